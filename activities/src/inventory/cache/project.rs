//! What a [`LeafCache`](super::LeafCache) keeps of a leaf.

use std::collections::BTreeMap;

use catalog_rules::ids::Sha256Hex;
use catalog_rules::inventory::{EntryState, Kind, Leaf, holders_in};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The first half of a URN's SHA-256: among the URNs of any catalog, no two have the same.
pub(super) type Key = [u8; 16];

/// The key of a URN.
pub(super) fn key(urn: &str) -> Key {
    let digest: [u8; 32] = Sha256::digest(urn.as_bytes()).into();
    let mut key = [0; 16];
    key.copy_from_slice(&digest[..16]);
    key
}

/// One full artefact in one edition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) edition: [u8; 16],
    pub(super) is_live: bool,
    pub(super) fingerprint: [u8; 32],
}

/// One product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Product {
    /// The SHA-256 of its leaf.
    pub(super) leaf: [u8; 32],
    pub(super) kind: Kind,
    /// Whether an edition of it is embargoed.
    pub(super) has_embargoed: bool,
    /// Whether what it holds cannot be told here, so that its leaf has to be read: an entry of an older writer without
    /// artefact records, or a fingerprint of another form than SHA-256.
    pub(super) is_opaque: bool,
    /// Each full artefact that others are compared with, edition after edition.
    pub(super) held: Vec<(Key, Held)>,
}

impl Product {
    /// What is kept of `leaf`, whose hash is `sha256`.
    pub(super) fn of(leaf: &Leaf, sha256: &Sha256Hex) -> Self {
        let held = holdings(leaf);
        Self {
            // Zeros are no leaf's hash, so that a leaf with them would be read again.
            leaf: raw_sha256(sha256.as_str()).unwrap_or_default(),
            kind: leaf.kind,
            has_embargoed: leaf.editions.iter().any(|entry| entry.state == EntryState::Embargoed),
            is_opaque: held.is_none(),
            held: held.unwrap_or_default(),
        }
    }
}

fn holdings(leaf: &Leaf) -> Option<Vec<(Key, Held)>> {
    let none = BTreeMap::new();
    let found = holders_in(leaf, &none).ok()?;
    let held = found.into_iter().map(|(urn, holder)| {
        let edition = Uuid::parse_str(holder.edition_id.as_str()).ok()?.into_bytes();
        let fingerprint = raw_sha256(&holder.fingerprint)?;
        Some((key(urn), Held { edition, is_live: holder.is_live, fingerprint }))
    });
    held.collect()
}

/// The 32 bytes of a SHA-256 in 64 lowercase hexadecimal digits.
pub(super) fn raw_sha256(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != 32 || !rest.is_empty() {
        return None;
    }
    let mut raw = [0; 32];
    for (byte, [high, low]) in raw.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(raw)
}
