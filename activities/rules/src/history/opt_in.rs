//! Whether a catalog may opt in to expiry, and what is written for it (*catalog* §6.1; H6, H21, D31).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::refusal::HistoryRefusal;
use crate::inventory::{CatalogHistory, CatalogJson, FormatVersion, History, Root, Seq, admit_base};

/// Where a catalog is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// A folder on a disk, locked by the operating system.
    Local,
    /// Memory, locked within the process.
    Memory,
    /// Azure Blob Storage, which has leases.
    Azure,
    /// An S3 server, which has none.
    S3,
    /// Google Cloud Storage, which has none.
    Gcs,
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Local => "a disk",
            Self::Memory => "memory",
            Self::Azure => "Azure Blob Storage",
            Self::S3 => "S3",
            Self::Gcs => "Google Cloud Storage",
        })
    }
}

impl StoreKind {
    /// Whether a writer can hold the catalog's lock there, so that old versions may expire (H21).
    #[must_use]
    pub fn may_expire(self) -> bool {
        match self {
            Self::Local | Self::Memory | Self::Azure => true,
            Self::S3 | Self::Gcs => false,
        }
    }

    /// Whether pods serve from it, so that the gates of an expiry apply.
    #[must_use]
    pub fn is_server(self) -> bool {
        match self {
            Self::Local | Self::Memory => false,
            Self::Azure | Self::S3 | Self::Gcs => true,
        }
    }
}

/// What was found of a root when the versions were looked through for their history fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryFields {
    /// It carries both.
    Both,
    /// It carries none.
    None,
    /// It cannot be read.
    Unreadable,
}

/// What is to be done for an opt-in.
#[derive(Debug, Clone, PartialEq)]
pub enum OptIn {
    /// Nothing: the catalog has opted in.
    Already {
        /// The lowest version from which every root carries the history fields.
        since_seq: Seq,
    },
    /// Write these, in this order, under the catalog's lock: create `history` exclusively where it is given; take the
    /// lease on it; look again (this decision once more, on what is there then); replace `catalog.json` if it is
    /// still as it was read.
    Write {
        /// `inventory/HISTORY`; `None` when an interrupted opt-in left it.
        history: Option<Box<History>>,
        /// `catalog.json` as it is to be.
        catalog: Box<CatalogJson>,
    },
}

/// What an opt-in of the catalog in `store` writes. `roots` are all versions from the first to `head`, the newest; a
/// version that is not there is missing. Safe to repeat: an interrupted opt-in is gone on with.
///
/// # Errors
/// [`HistoryRefusal`] for a store without leases, an unfinished restore, a head without history fields, versions
/// without them after one with them, a version that is missing or cannot be read, or a `HISTORY` that no opt-in left.
pub fn opt_in(
    catalog: &CatalogJson,
    history: Option<&History>,
    head: &Root,
    roots: &BTreeMap<Seq, HistoryFields>,
    store: StoreKind,
) -> Result<OptIn, HistoryRefusal> {
    if let Some(history) = history.filter(|history| history.catalog_id != catalog.catalog_id) {
        return Err(HistoryRefusal::OtherCatalog {
            document: crate::layout::HISTORY.to_owned(),
            found: history.catalog_id.clone(),
            expected: catalog.catalog_id.clone(),
        });
    }
    if let Some(since) = &catalog.history {
        admit_base(catalog, history, head)?;
        return Ok(OptIn::Already { since_seq: since.since_seq });
    }
    if !store.may_expire() {
        return Err(HistoryRefusal::StoreWithoutLease { store });
    }
    admit_base(catalog, None, head)?;
    if let Some(history) = history {
        left_by_an_opt_in(catalog, history)?;
    }
    let since_seq = since_seq(head.seq, roots)?;
    let new = History {
        format_version: FormatVersion { major: 1, minor: 0 },
        catalog_id: catalog.catalog_id.clone(),
        restore_epoch: catalog.restore_epoch,
        expired_through: 0,
        newest_segment: None,
        newest_segment_sha256: None,
        cleaned_through: None,
        other: Map::new(),
    };
    Ok(OptIn::Write {
        history: history.is_none().then(|| Box::new(new)),
        catalog: Box::new(CatalogJson {
            format_version: FormatVersion { major: 2, minor: 0 },
            history: Some(CatalogHistory { since_seq }),
            ..catalog.clone()
        }),
    })
}

fn left_by_an_opt_in(catalog: &CatalogJson, history: &History) -> Result<(), HistoryRefusal> {
    let foreign = |found: String| Err(HistoryRefusal::HistoryForeign { found });
    if history.expired_through != 0 || history.newest_segment.is_some() || history.cleaned_through.is_some() {
        let newest = history.newest_segment.as_deref().unwrap_or("none");
        return foreign(format!("expired_through {} and newest segment {newest}", history.expired_through));
    }
    if history.restore_epoch != catalog.restore_epoch {
        return foreign(format!("restore epoch {}, not {}", history.restore_epoch, catalog.restore_epoch));
    }
    Ok(())
}

/// The lowest version from which every one carries the history fields (H19).
fn since_seq(head: Seq, roots: &BTreeMap<Seq, HistoryFields>) -> Result<Seq, HistoryRefusal> {
    let mut since = None;
    let mut seq = Seq::FIRST;
    loop {
        match (roots.get(&seq), since) {
            (None, _) => return Err(HistoryRefusal::RootMissing { seq }),
            (Some(HistoryFields::Unreadable), _) => {
                return Err(HistoryRefusal::RootDamaged { seq, why: "it is no root of this version".to_owned() });
            }
            (Some(HistoryFields::Both), None) => since = Some(seq),
            (Some(HistoryFields::Both), Some(_)) | (Some(HistoryFields::None), None) => {}
            (Some(HistoryFields::None), Some(with)) => {
                return Err(HistoryRefusal::HistoryInterrupted { with, without: seq });
            }
        }
        if seq >= head {
            return since.ok_or(HistoryRefusal::HeadWithoutHistory { seq: head });
        }
        seq = seq.next();
    }
}
