//! The identifiers of the format, each a type of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Why a text is not an identifier of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {kind}: expected {expected}")]
pub struct BadId {
    /// What the text should have been, with its article ("a product id").
    pub kind: &'static str,
    /// The text as it was given.
    pub found: String,
    /// The form that was expected.
    pub expected: &'static str,
}

macro_rules! text_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier as it is written in documents and paths.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

text_id! {
    /// The producer's stable name for a product, kept across editions (*edition* §2). It names a directory, so it is
    /// 1 to 128 ASCII letters, digits, `-`, `_` or `.`, and begins with a letter or a digit.
    ProductId
}

text_id! {
    /// The name of an edition and of its directory: a UUIDv7 in lowercase with hyphens (*edition* §3).
    EditionId
}

text_id! {
    /// The name of a catalog, kept by a full export: a UUIDv7 (*catalog* §6.1).
    CatalogId
}

text_id! {
    /// A SHA-256 as 64 lowercase hexadecimal digits.
    Sha256Hex
}

impl FromStr for ProductId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        let ok = (1..=128).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            && text.as_bytes()[0].is_ascii_alphanumeric();
        if ok {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadId {
                kind: "a product id",
                found: text.to_owned(),
                expected: "1 to 128 ASCII letters, digits, '-', '_' or '.', beginning with a letter or a digit, such as 14100287",
            })
        }
    }
}

fn parse_uuid7(text: &str, kind: &'static str) -> Result<String, BadId> {
    match Uuid::parse_str(text) {
        Ok(id) if id.get_version_num() == 7 && id.hyphenated().to_string() == text => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err(BadId {
            kind,
            found: text.to_owned(),
            expected: "a UUIDv7 in lowercase with hyphens, such as 01a18e76-2bad-7480-abfe-2ba8a6889a45",
        }),
    }
}

impl FromStr for EditionId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        parse_uuid7(text, "an edition id").map(Self)
    }
}

impl EditionId {
    /// The edition id made of `id`, which the caller minted as a UUIDv7.
    ///
    /// # Errors
    /// [`BadId`] when `id` is not of version 7.
    pub fn from_uuid(id: Uuid) -> Result<Self, BadId> {
        id.hyphenated().to_string().parse()
    }

    /// The milliseconds since 1970 at which the id was minted.
    #[must_use]
    pub fn minted_at_ms(&self) -> u64 {
        let digits: String = self.0.chars().filter(char::is_ascii_hexdigit).take(12).collect();
        u64::from_str_radix(&digits, 16).unwrap_or_default()
    }
}

impl FromStr for CatalogId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        parse_uuid7(text, "a catalog id").map(Self)
    }
}

impl CatalogId {
    /// The catalog id made of `id`, which the caller minted as a UUIDv7.
    ///
    /// # Errors
    /// [`BadId`] when `id` is not of version 7.
    pub fn from_uuid(id: Uuid) -> Result<Self, BadId> {
        id.hyphenated().to_string().parse()
    }
}

impl FromStr for Sha256Hex {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadId { kind: "a SHA-256", found: text.to_owned(), expected: "64 lowercase hexadecimal digits" })
        }
    }
}

impl Sha256Hex {
    /// The SHA-256 whose 32 bytes are `digest`.
    #[must_use]
    pub fn from_digest(digest: &[u8; 32]) -> Self {
        Self(hex(digest))
    }

    /// The SHA-256 of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(hex(&sha2::Sha256::digest(bytes)))
    }
}

/// `bytes` as lowercase hexadecimal digits, two a byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_id_never_leaves_its_folder() {
        for good in ["14100287", "census-2021-cpt", "a.b_c"] {
            assert_eq!(good.parse::<ProductId>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "a\\b", ".hidden", "-x", "é", "a b", &"x".repeat(129)] {
            assert!(bad.parse::<ProductId>().is_err(), "{bad:?} passed");
        }
    }

    #[test]
    fn an_edition_id_is_a_uuid7_and_knows_its_time() {
        let id: EditionId = "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap();
        assert_eq!(id.minted_at_ms(), 0x01a1_8e76_2bad);
        for bad in ["01a18e76-2bad-4480-abfe-2ba8a6889a45", "01A18E76-2BAD-7480-ABFE-2BA8A6889A45", "x"] {
            assert!(bad.parse::<EditionId>().is_err(), "{bad:?} passed");
        }
    }
}
