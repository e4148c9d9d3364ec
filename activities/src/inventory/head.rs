//! Finding the newest version (*catalog* §6.6, *history* H13, D32): `CURRENT` is a hint, the roots decide.

use bytes::Bytes;
use catalog_rules::ids::Sha256Hex;
use catalog_rules::inventory::{CatalogJson, Current, Document, DocumentError, History, Root, Seq};
use catalog_rules::layout;

use super::error::InventoryError;
use crate::store::StoreError;

pub(super) type FetchRef<'a> = &'a (dyn Fn(&str) -> Result<Option<Bytes>, StoreError> + Sync);

/// A version whose root was read and is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The root.
    pub root: Root,
    /// The SHA-256 of its stored bytes.
    pub root_sha256: Sha256Hex,
}

impl Head {
    /// The version's number.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.root.seq
    }

    /// The hint that names this version.
    #[must_use]
    pub fn current(&self) -> Current {
        Current { seq: self.root.seq, root_sha256: self.root_sha256.clone(), restore_epoch: self.root.restore_epoch }
    }

    /// The version that the root of `seq` in `bytes` holds.
    pub(super) fn decode(seq: Seq, bytes: &[u8]) -> Result<Self, RootFault> {
        Self::decode_hashed(seq, bytes, Sha256Hex::of(bytes))
    }

    /// The same for bytes whose SHA-256 is known.
    fn decode_hashed(seq: Seq, bytes: &[u8], root_sha256: Sha256Hex) -> Result<Self, RootFault> {
        let root = Root::decode(bytes)?;
        if root.seq != seq {
            return Err(RootFault::OtherSeq { found: root.seq });
        }
        Ok(Self { root, root_sha256 })
    }
}

/// What is wrong with a root.
#[derive(Debug, thiserror::Error)]
pub enum RootFault {
    /// It is no root.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is another version's.
    #[error("it says that it is version {found}")]
    OtherSeq {
        /// The version that it says.
        found: Seq,
    },
    /// It is not the one that `CURRENT` names.
    #[error("its SHA-256 is {found}, and CURRENT names {expected}")]
    Hash {
        /// The SHA-256 of its bytes.
        found: Sha256Hex,
        /// The SHA-256 that `CURRENT` names.
        expected: Sha256Hex,
    },
    /// Its epoch cannot be.
    #[error("its restore epoch is {found}, and {expected} was expected")]
    Epoch {
        /// Its epoch.
        found: u64,
        /// The epoch of the version before it, of `CURRENT`, or of the catalog.
        expected: u64,
    },
}

/// Something that a reader got over, and that a person should know (*catalog* §11.6).
#[derive(Debug, thiserror::Error)]
pub enum Alert {
    /// A root that is not valid was passed over.
    #[error("version {seq} is not valid and was passed over: {fault}")]
    InvalidRoot {
        /// The version.
        seq: Seq,
        /// What is wrong with it.
        fault: RootFault,
    },
    /// `CURRENT` is missing.
    #[error("CURRENT is missing: the newest version was searched for")]
    CurrentMissing,
    /// `CURRENT` is no hint.
    #[error("CURRENT cannot be read: the newest version was searched for")]
    CurrentUnreadable,
    /// `CURRENT` names a version that is not there.
    #[error("CURRENT names version {seq}, which is not there: the newest version was searched for")]
    CurrentAbsent {
        /// The version.
        seq: Seq,
    },
    /// `CURRENT` is of an epoch before the one that was read already.
    #[error("CURRENT is of restore epoch {found}, before {held}, which was read already: it was ignored")]
    OlderEpoch {
        /// Its epoch.
        found: u64,
        /// The epoch held.
        held: u64,
    },
}

/// The newest version, and what was passed over on the way.
pub(super) struct Found {
    pub(super) head: Head,
    pub(super) alerts: Vec<Alert>,
}

/// The newest version that `fetch` shows. `held` is the one that the caller has: no lower one is ever given back in the
/// same epoch. Nothing is listed.
pub(super) fn find_head(fetch: FetchRef<'_>, held: Option<Head>) -> Result<Found, InventoryError> {
    let mut search = Search { fetch, alerts: Vec::new() };
    let head = match search.current()? {
        None => search.fallback(held, None)?,
        Some(current) => match held {
            // What is held was verified; CURRENT has nothing newer to offer than a place to begin.
            Some(held) if current.restore_epoch == held.root.restore_epoch && current.seq <= held.seq() => {
                search.forward(held)?
            }
            Some(held) if current.restore_epoch < held.root.restore_epoch => {
                search.alerts.push(Alert::OlderEpoch { found: current.restore_epoch, held: held.root.restore_epoch });
                search.forward(held)?
            }
            held => search.follow(&current, held)?,
        },
    };
    Ok(Found { head, alerts: search.alerts })
}

struct Search<'a> {
    fetch: FetchRef<'a>,
    alerts: Vec<Alert>,
}

impl Search<'_> {
    fn current(&mut self) -> Result<Option<Current>, InventoryError> {
        let Some(bytes) = (self.fetch)(layout::CURRENT)? else {
            self.alerts.push(Alert::CurrentMissing);
            return Ok(None);
        };
        let current = Current::decode(&bytes);
        if current.is_none() {
            self.alerts.push(Alert::CurrentUnreadable);
        }
        Ok(current)
    }

    fn follow(&mut self, current: &Current, held: Option<Head>) -> Result<Head, InventoryError> {
        let Some(bytes) = (self.fetch)(&layout::root(current.seq))? else {
            self.alerts.push(Alert::CurrentAbsent { seq: current.seq });
            return self.fallback(held, None);
        };
        match verified(current, &bytes) {
            Ok(head) => self.forward(head),
            Err(fault) => {
                self.alerts.push(Alert::InvalidRoot { seq: current.seq, fault });
                self.fallback(held, Some(current.seq))
            }
        }
    }

    /// Probes the versions after `head` until one is absent, and gives the last valid one.
    fn forward(&mut self, mut head: Head) -> Result<Head, InventoryError> {
        let mut seq = head.seq().next();
        while let Some(bytes) = (self.fetch)(&layout::root(seq))? {
            let expected = head.root.restore_epoch;
            match Head::decode(seq, &bytes) {
                Ok(next) if next.root.restore_epoch >= expected => head = next,
                Ok(next) => {
                    let fault = RootFault::Epoch { found: next.root.restore_epoch, expected };
                    self.alerts.push(Alert::InvalidRoot { seq, fault });
                }
                Err(fault) => self.alerts.push(Alert::InvalidRoot { seq, fault }),
            }
            seq = seq.next();
        }
        Ok(head)
    }

    /// The way without a trustworthy `CURRENT` (H13). `damaged` is the version that `CURRENT` names and that does not
    /// verify: then the last valid one before it is looked for, and the ones after it.
    fn fallback(&mut self, held: Option<Head>, damaged: Option<Seq>) -> Result<Head, InventoryError> {
        let (restore_epoch, expired_through) = self.epoch()?;
        let held = held.filter(|held| held.root.restore_epoch == restore_epoch && held.seq().get() > expired_through);
        let above = held.as_ref().map_or(0, |held| held.seq().get()).max(expired_through);

        let mut found = None;
        if let Some(damaged) = damaged {
            let mut before = damaged.before();
            while let Some(seq) = before.filter(|seq| seq.get() > above && found.is_none()) {
                found = self.root_of_epoch(seq, restore_epoch)?.flatten();
                before = seq.before();
            }
        }
        let first = damaged.map_or(above, |damaged| damaged.get().max(above));
        let mut next = Seq::new(first.saturating_add(1));
        while let Some(seq) = next {
            match self.root_of_epoch(seq, restore_epoch)? {
                None => break,
                Some(None) => {}
                Some(Some(head)) => found = Some(head),
            }
            next = Some(seq.next());
        }
        found.or(held).ok_or(InventoryError::NoVersion { above, restore_epoch })
    }

    /// The version `seq` if its root is there: the inner `None` when it is not valid or of another epoch.
    fn root_of_epoch(&mut self, seq: Seq, restore_epoch: u64) -> Result<Option<Option<Head>>, InventoryError> {
        let Some(bytes) = (self.fetch)(&layout::root(seq))? else { return Ok(None) };
        let fault = match Head::decode(seq, &bytes) {
            Ok(head) if head.root.restore_epoch == restore_epoch => return Ok(Some(Some(head))),
            // Before a restore: valid, and not this epoch's.
            Ok(head) if head.root.restore_epoch < restore_epoch => return Ok(Some(None)),
            Ok(head) => RootFault::Epoch { found: head.root.restore_epoch, expected: restore_epoch },
            Err(fault) => fault,
        };
        self.alerts.push(Alert::InvalidRoot { seq, fault });
        Ok(Some(None))
    }

    /// The epoch, and the highest version that expired.
    fn epoch(&self) -> Result<(u64, u64), InventoryError> {
        let catalog = read_catalog(self.fetch)?;
        if catalog.format_version.major < 2 {
            return Ok((catalog.restore_epoch, 0));
        }
        let bytes = (self.fetch)(layout::HISTORY)?.ok_or(InventoryError::NoHistory)?;
        let history = History::decode(&bytes)
            .map_err(|source| InventoryError::Document { path: layout::HISTORY.to_owned(), source })?;
        Ok((history.restore_epoch, history.expired_through))
    }
}

/// `catalog.json`, as a reader decodes it.
pub(super) fn read_catalog(fetch: FetchRef<'_>) -> Result<CatalogJson, InventoryError> {
    let bytes = fetch(layout::CATALOG)?
        .ok_or_else(|| InventoryError::NotACatalog { place: "this place".to_owned(), found: None })?;
    CatalogJson::decode(&bytes).map_err(|source| InventoryError::Document { path: layout::CATALOG.to_owned(), source })
}

fn verified(current: &Current, bytes: &[u8]) -> Result<Head, RootFault> {
    let found = Sha256Hex::of(bytes);
    if found != current.root_sha256 {
        return Err(RootFault::Hash { found, expected: current.root_sha256.clone() });
    }
    let head = Head::decode_hashed(current.seq, bytes, found)?;
    if head.root.restore_epoch != current.restore_epoch {
        return Err(RootFault::Epoch { found: head.root.restore_epoch, expected: current.restore_epoch });
    }
    Ok(head)
}
