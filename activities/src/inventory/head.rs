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

    /// Whether `next` names this version as the one before it, as far as the two tell.
    pub(super) fn check_next(&self, next: &Self) -> Result<(), RootFault> {
        if next.root.chains_to(&self.root, &self.root_sha256) {
            return Ok(());
        }
        let found = next.root.previous_root_sha256.clone().flatten();
        Err(RootFault::Chain { base: self.seq(), found, expected: self.root_sha256.clone() })
    }

    /// [`Head::decode`] for bytes whose SHA-256 is known.
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
    /// It does not follow the version before it.
    #[error(
        "it names {} as the SHA-256 of the version before it, and that of version {base} is {expected}",
        found.as_ref().map_or("nothing", Sha256Hex::as_str)
    )]
    Chain {
        /// The version before it.
        base: Seq,
        /// Its `previous_root_sha256`.
        found: Option<Sha256Hex>,
        /// The SHA-256 of the version before it.
        expected: Sha256Hex,
    },
    /// It follows a version that does not follow the one before it.
    #[error("it was built on version {base}, which does not follow the version before it")]
    OffChain {
        /// The version before it.
        base: Seq,
    },
    /// It is sound, and `CURRENT` says something else of it.
    #[error("{fault}; the root is valid by itself, so which of the two was changed is not known")]
    Hint {
        /// Where they differ.
        fault: Box<RootFault>,
    },
}

impl RootFault {
    /// What a person can do about version `seq`, which no version can follow because of this.
    pub(super) fn fix(&self, seq: Seq) -> String {
        let path = layout::root(seq);
        let repair = format!(
            "where no backup has it, find out what wrote it; then delete it, a copy is kept: jobctl run repair-head \
             --seq {seq} --reason …; readers stay on the version before it"
        );
        match self {
            Self::Hint { .. } => format!(
                "compare {path} with a backup; if it is right, delete CURRENT, which is a hint: the next reader and \
                 writer find the newest version without it; if it is not, restore it from the backup (catalog §10.3)"
            ),
            Self::Chain { base, .. } => format!(
                "no writer of this catalog wrote it, or version {base} was changed since: compare {path} and {} with a \
                 backup, and restore the one that differs (catalog §10.3); {repair}",
                layout::root(*base)
            ),
            Self::OffChain { base } => {
                format!("mend version {base} first, of which jobctl verify tells as well; {path} was built on it")
            }
            Self::Document(_) | Self::OtherSeq { .. } | Self::Hash { .. } | Self::Epoch { .. } => {
                format!("restore {path} from a backup (catalog §10.3); {repair}")
            }
        }
    }
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

impl Alert {
    /// The version whose root is not valid.
    fn seq(&self) -> Option<Seq> {
        match self {
            Self::InvalidRoot { seq, .. } => Some(*seq),
            Self::CurrentMissing | Self::CurrentUnreadable | Self::CurrentAbsent { .. } | Self::OlderEpoch { .. } => {
                None
            }
        }
    }

    /// Takes out of `alerts` the lowest version above `head` that is not valid: no version can follow (D16).
    pub(super) fn take_blocking(alerts: &mut Vec<Self>, head: Seq) -> Option<(Seq, RootFault)> {
        let above = alerts.iter().enumerate().filter_map(|(at, alert)| Some((alert.seq()?, at)));
        let (_, at) = above.filter(|(seq, _)| *seq > head).min()?;
        match alerts.remove(at) {
            Self::InvalidRoot { seq, fault } => Some((seq, fault)),
            Self::CurrentMissing | Self::CurrentUnreadable | Self::CurrentAbsent { .. } | Self::OlderEpoch { .. } => {
                None
            }
        }
    }
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

/// The newest version that another can follow, for those who write (D16): [`find_head`], and that it names the version
/// before it, for which the bytes of that version's root are read.
pub(super) fn find_base(fetch: FetchRef<'_>) -> Result<Found, InventoryError> {
    let mut found = find_head(fetch, None)?;
    if let Some(seq) = found.head.seq().before()
        && let Some(named) = &found.head.root.previous_root_sha256
        && let Some(bytes) = fetch(&layout::root(seq))?
        && let root_sha256 = Sha256Hex::of(&bytes)
        && named.as_ref() != Some(&root_sha256)
        && let Ok(before) = Head::decode_hashed(seq, &bytes, root_sha256)
        && let Err(fault) = before.check_next(&found.head)
    {
        found.alerts.push(Alert::InvalidRoot { seq: found.head.seq(), fault });
        found.head = before;
    }
    Ok(found)
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
                let at = self.alerts.len();
                let found = self.fallback(held, Some(current.seq));
                let fault = Self::of_hint(current.seq, &bytes, fault, found.as_ref());
                match (found, fault) {
                    // There is no version before it: it is this one or none.
                    (Err(InventoryError::NoVersion { .. }), fault @ RootFault::Hint { .. }) => {
                        Err(InventoryError::HeadInvalid { seq: current.seq, fault })
                    }
                    (found, fault) => {
                        self.alerts.insert(at, Alert::InvalidRoot { seq: current.seq, fault });
                        found
                    }
                }
            }
        }
    }

    /// What is wrong with the root in `bytes` that `CURRENT` names as something else: where it is sound by itself, and
    /// follows the version before it as far as that is known, either of the two may have been changed.
    fn of_hint(seq: Seq, bytes: &[u8], fault: RootFault, found: Result<&Head, &InventoryError>) -> RootFault {
        let Ok(named) = Head::decode(seq, bytes) else { return fault };
        let is_sound = match found {
            Ok(before) if before.seq().next() == seq => {
                named.root.restore_epoch == before.root.restore_epoch && before.check_next(&named).is_ok()
            }
            Err(InventoryError::NoVersion { restore_epoch, .. }) => named.root.restore_epoch == *restore_epoch,
            // Above one that is damaged, or below the newest: there is nothing to decide yet, or no more.
            Ok(_) | Err(_) => false,
        };
        if is_sound { RootFault::Hint { fault: Box::new(fault) } } else { fault }
    }

    /// Probes the versions after `head` until one is absent, and gives the last valid one.
    fn forward(&mut self, mut head: Head) -> Result<Head, InventoryError> {
        let mut seq = head.seq().next();
        // The last one that was passed over because it, or one below it, does not follow the version before.
        let mut off: Option<Head> = None;
        while let Some(bytes) = (self.fetch)(&layout::root(seq))? {
            let expected = head.root.restore_epoch;
            let fault = match Head::decode(seq, &bytes) {
                Ok(next) if next.root.restore_epoch < expected => {
                    RootFault::Epoch { found: next.root.restore_epoch, expected }
                }
                Ok(next) => {
                    let base = off.take().filter(|off| off.seq().next() == seq);
                    let checked = match &base {
                        Some(off) if off.root.restore_epoch == next.root.restore_epoch => {
                            Err(RootFault::OffChain { base: off.seq() })
                        }
                        Some(_) | None => head.check_next(&next),
                    };
                    match checked {
                        Ok(()) => {
                            head = next;
                            seq = seq.next();
                            continue;
                        }
                        Err(fault) => {
                            off = Some(next);
                            fault
                        }
                    }
                }
                Err(fault) => fault,
            };
            self.alerts.push(Alert::InvalidRoot { seq, fault });
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

        let (mut found, mut before): (Option<Head>, Option<Head>) = (None, None);
        if let Some(damaged) = damaged {
            let mut back = damaged.before();
            while let Some(seq) = back.filter(|seq| seq.get() > above && found.is_none()) {
                found = self.root_of_epoch(seq, restore_epoch)?.flatten();
                back = seq.before();
            }
        }
        let first = damaged.map_or(above, |damaged| damaged.get().max(above));
        let mut next = Seq::new(first.saturating_add(1));
        while let Some(seq) = next {
            match self.root_of_epoch(seq, restore_epoch)? {
                None => break,
                Some(None) => {}
                Some(Some(head)) => before = found.replace(head),
            }
            next = Some(seq.next());
        }
        // Of the versions below, each is the base of one above it; the newest has nothing but its own word.
        if let (Some(before), Some(head)) = (before.or_else(|| held.clone()), &found)
            && let Err(fault) = before.check_next(head)
        {
            self.alerts.push(Alert::InvalidRoot { seq: head.seq(), fault });
            found = Some(before);
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
