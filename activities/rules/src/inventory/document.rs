//! Reading and writing a document: compact JSON in the order of its fields.

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// The version of a document's format, `major.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FormatVersion {
    /// A reader refuses a major that it does not know.
    pub major: u32,
    /// A minor only adds optional fields and event kinds.
    pub minor: u32,
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text that is not a format version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a format version such as \"1.2\"")]
pub struct BadFormatVersion {
    found: String,
}

impl FromStr for FormatVersion {
    type Err = BadFormatVersion;
    fn from_str(text: &str) -> Result<Self, BadFormatVersion> {
        text.split_once('.')
            .and_then(|(major, minor)| Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? }))
            .filter(|version| version.to_string() == text)
            .ok_or_else(|| BadFormatVersion { found: text.to_owned() })
    }
}

impl TryFrom<String> for FormatVersion {
    type Error = BadFormatVersion;
    fn try_from(text: String) -> Result<Self, BadFormatVersion> {
        text.parse()
    }
}

impl From<FormatVersion> for String {
    fn from(version: FormatVersion) -> String {
        version.to_string()
    }
}

/// Why bytes are not a document of the Inventory.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, or not the fields of this document.
    #[error("{rule}: this is not a valid {document}: {source}")]
    Json {
        /// Which document.
        document: &'static str,
        /// Where the specification describes it.
        rule: &'static str,
        /// Line, column and what was found.
        source: serde_json::Error,
    },
    /// A major version that this program does not know.
    #[error("{rule}: this {document} has format {found}, and this program reads major {known}; use a newer jobctl")]
    Major {
        /// Which document.
        document: &'static str,
        /// Where the specification says so.
        rule: &'static str,
        /// The version that the document has.
        found: FormatVersion,
        /// The majors that are known.
        known: &'static str,
    },
    /// The fields are there, and contradict a rule.
    #[error("{rule}: this {document} has {found}; expected {expected}")]
    Rule {
        /// Which document.
        document: &'static str,
        /// The rule.
        rule: &'static str,
        /// What the document says.
        found: String,
        /// What the rule asks for.
        expected: &'static str,
    },
}

/// A document with a format version of its own.
pub trait Document: Serialize + DeserializeOwned {
    /// What a person calls it.
    const NAME: &'static str;
    /// Where it is specified.
    const RULE: &'static str;
    /// The known majors, as a person reads them.
    const MAJORS: &'static str;

    /// The version that this document states.
    fn format_version(&self) -> FormatVersion;

    /// Whether a reader knows this major.
    fn knows(major: u32) -> bool;

    /// Checks what one document can be asked by itself.
    ///
    /// # Errors
    /// [`DocumentError::Rule`] with the first rule that does not hold.
    fn validate(&self) -> Result<(), DocumentError>;

    /// Reads the document and validates it.
    ///
    /// # Errors
    /// [`DocumentError`] when the bytes are no such document, of an unknown major, or against a rule.
    fn decode(bytes: &[u8]) -> Result<Self, DocumentError> {
        let major = |found: FormatVersion| DocumentError::Major {
            document: Self::NAME,
            rule: Self::RULE,
            found,
            known: Self::MAJORS,
        };
        match serde_json::from_slice::<Self>(bytes) {
            Ok(document) if Self::knows(document.format_version().major) => {
                document.validate()?;
                Ok(document)
            }
            Ok(document) => Err(major(document.format_version())),
            // A newer major may well have other fields: then that is what is wrong with it.
            Err(source) => match serde_json::from_slice::<Probe>(bytes) {
                Ok(probe) if !Self::knows(probe.format_version.major) => Err(major(probe.format_version)),
                Ok(_) | Err(_) => Err(DocumentError::Json { document: Self::NAME, rule: Self::RULE, source }),
            },
        }
    }

    /// The bytes of the document: compact JSON, the fields in the order of the specification. Equal documents have
    /// equal bytes.
    ///
    /// # Errors
    /// [`DocumentError::Json`] should a value have no JSON form; those of this crate all have one.
    fn encode(&self) -> Result<Vec<u8>, DocumentError> {
        serde_json::to_vec(self).map_err(|source| DocumentError::Json {
            document: Self::NAME,
            rule: Self::RULE,
            source,
        })
    }
}

#[derive(Deserialize)]
struct Probe {
    format_version: FormatVersion,
}

/// A field that must be there and may be `null`.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// A field that may be absent, and is told apart from `null`.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Whether the keys rise strictly: sorted, and none twice.
pub(super) fn rises<K: PartialOrd>(mut keys: impl Iterator<Item = K>) -> bool {
    let Some(mut last) = keys.next() else { return true };
    keys.all(|key| {
        let rises = last < key;
        last = key;
        rises
    })
}
