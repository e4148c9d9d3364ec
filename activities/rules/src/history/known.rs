//! What is known of a catalog while a plan is made, and what has to be read next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::cache::{Cache, ETag, RootFacts, SegmentFacts, SegmentRef};
use super::refusal::HistoryRefusal;
use crate::instant::Instant;
use crate::inventory::{CatalogJson, Current, History, Seq};
use crate::layout;

/// How much of a root has to be read for its [`RootStamp`] (*catalog* §6.2: `created_at` is the fifth field).
pub const STAMP_BYTES: u64 = 1024;

/// What the beginning of a root says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootStamp {
    /// Its epoch.
    pub restore_epoch: u64,
    /// When it was written.
    pub created_at: Instant,
}

impl RootStamp {
    /// The stamp in the first [`STAMP_BYTES`] of a root; `None` when it is not there, as in a root whose fields are in
    /// another order: then the whole root has to be read.
    #[must_use]
    pub fn of(beginning: &[u8]) -> Option<Self> {
        struct Fields {
            epoch: Option<u64>,
            at: Option<Instant>,
        }
        struct Beginning<'a>(&'a mut Fields);
        impl<'de> Visitor<'de> for Beginning<'_> {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the beginning of a root")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "restore_epoch" => self.0.epoch = Some(map.next_value()?),
                        "created_at" => self.0.at = Some(map.next_value()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                    if self.0.epoch.is_some() && self.0.at.is_some() {
                        break;
                    }
                }
                Ok(())
            }
        }
        let mut fields = Fields { epoch: None, at: None };
        // The text ends in the middle, which is an error and does not matter once both fields were seen.
        let _ = serde_json::Deserializer::from_slice(beginning).deserialize_map(Beginning(&mut fields));
        Some(Self { restore_epoch: fields.epoch?, created_at: fields.at? })
    }
}

/// An object that has to be read before a decision can be made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// The first [`STAMP_BYTES`] of a root: give them to [`Known::add_stamp`].
    Stamp(Seq),
    /// A whole root: give it to [`Known::add_root`].
    Root(Seq),
    /// A whole segment: give it to [`Known::add_segment`].
    Segment(String),
}

/// A decision, or what it needs first.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage<T> {
    /// Read these, add them to what is known, and ask again. Never empty, and never what was read already.
    Read(BTreeSet<Read>),
    /// The decision.
    Ready(T),
}

impl<T> Stage<T> {
    pub(super) fn need(read: Read) -> Self {
        Self::Read(BTreeSet::from([read]))
    }
}

/// Hands on what has to be read, and goes on with what is decided.
macro_rules! ready {
    ($stage:expr) => {
        match $stage {
            $crate::history::known::Stage::Ready(value) => value,
            $crate::history::known::Stage::Read(reads) => return Ok($crate::history::known::Stage::Read(reads)),
        }
    };
}
pub(super) use ready;

/// What is known of a catalog that opted in. All of it was read or listed under the catalog's lock.
#[derive(Debug, Clone)]
pub struct Known {
    /// `catalog.json`.
    pub catalog: CatalogJson,
    /// `inventory/HISTORY`.
    pub history: History,
    /// The newest valid version. While a restore is unfinished, so that readers find none, the highest root that can be
    /// read.
    pub head: Seq,
    /// `CURRENT`. An expiry brings it up to the head first; a restore that was interrupted may have left it behind.
    pub current: Current,
    /// The roots that a LIST of `inventory/` shows.
    pub roots: BTreeMap<Seq, ETag>,
    /// The segments that a LIST of `history/` shows.
    pub segments: BTreeSet<String>,
    /// What is known of roots and segments.
    pub cache: Cache,
    /// What the beginnings of roots say; `None` for one that says too little.
    stamps: BTreeMap<Seq, (ETag, Option<RootStamp>)>,
    /// Roots that were read and are none.
    damaged: BTreeMap<Seq, (ETag, String)>,
    damaged_segments: BTreeMap<String, String>,
}

impl Known {
    /// What is known before anything was read.
    #[must_use]
    pub fn new(catalog: CatalogJson, history: History, head: Seq, current: Current, cache: Cache) -> Self {
        Self {
            catalog,
            history,
            head,
            current,
            roots: BTreeMap::new(),
            segments: BTreeSet::new(),
            cache,
            stamps: BTreeMap::new(),
            damaged: BTreeMap::new(),
            damaged_segments: BTreeMap::new(),
        }
    }

    /// Adds the beginning of a root, as read with this `ETag`. One that says too little is asked for as a whole.
    pub fn add_stamp(&mut self, seq: Seq, etag: ETag, beginning: &[u8]) {
        self.roots.insert(seq, etag.clone());
        self.stamps.insert(seq, (etag, RootStamp::of(beginning)));
    }

    /// Adds a whole root, as read with this `ETag`. The `ETag` counts, should the listing have had another.
    pub fn add_root(&mut self, seq: Seq, etag: ETag, bytes: &[u8]) {
        self.roots.insert(seq, etag.clone());
        match self.cache.keep_root(seq, etag.clone(), bytes) {
            Ok(_) => drop(self.damaged.remove(&seq)),
            Err(why) => drop(self.damaged.insert(seq, (etag, why))),
        }
    }

    /// Adds a whole segment.
    pub fn add_segment(&mut self, path: &str, bytes: &[u8]) {
        match SegmentFacts::of(path, bytes) {
            Ok(facts) => self.cache.keep_segment(facts),
            Err(why) => drop(self.damaged_segments.insert(path.to_owned(), why)),
        }
    }

    /// Says that an object that was asked for is not there any more.
    pub fn gone(&mut self, read: &Read) {
        match read {
            Read::Stamp(seq) | Read::Root(seq) => drop(self.roots.remove(seq)),
            Read::Segment(path) => drop(self.segments.remove(path)),
        }
    }

    /// What is known of root `seq`, read whole as it is listed.
    #[must_use]
    pub fn facts(&self, seq: Seq) -> Option<&RootFacts> {
        self.cache.root(seq, self.roots.get(&seq)?)
    }

    /// Why root `seq`, read whole as it is listed, is none.
    #[must_use]
    pub fn damage(&self, seq: Seq) -> Option<&str> {
        let (etag, why) = self.damaged.get(&seq)?;
        (self.roots.get(&seq) == Some(etag)).then_some(why.as_str())
    }

    /// Why the segment at `path` is none.
    #[must_use]
    pub fn segment_damage(&self, path: &str) -> Option<&str> {
        self.damaged_segments.get(path).map(String::as_str)
    }

    /// The stamp of root `seq`, or the read that gives it.
    pub(super) fn stamp(&self, seq: Seq) -> Result<Stage<RootStamp>, HistoryRefusal> {
        let etag = self.roots.get(&seq).ok_or(HistoryRefusal::RootMissing { seq })?;
        if let Some(facts) = self.cache.root(seq, etag) {
            return Ok(Stage::Ready(RootStamp { restore_epoch: facts.restore_epoch, created_at: facts.created_at }));
        }
        match self.stamps.get(&seq).filter(|(known, _)| known == etag) {
            None => Ok(Stage::need(Read::Stamp(seq))),
            Some((_, Some(stamp))) => Ok(Stage::Ready(*stamp)),
            Some((_, None)) => {
                let facts = ready!(self.whole(seq)?);
                Ok(Stage::Ready(RootStamp { restore_epoch: facts.restore_epoch, created_at: facts.created_at }))
            }
        }
    }

    /// What is known of root `seq`, or the read that gives it.
    pub(super) fn whole(&self, seq: Seq) -> Result<Stage<&RootFacts>, HistoryRefusal> {
        if !self.roots.contains_key(&seq) {
            return Err(HistoryRefusal::RootMissing { seq });
        }
        if let Some(facts) = self.facts(seq) {
            return Ok(Stage::Ready(facts));
        }
        match self.damage(seq) {
            Some(why) => Err(HistoryRefusal::RootDamaged { seq, why: why.to_owned() }),
            None => Ok(Stage::need(Read::Root(seq))),
        }
    }

    /// Nothing, once every listed root of `seqs` was read whole.
    pub(super) fn all_whole(&self, seqs: impl Iterator<Item = Seq>) -> Result<Stage<()>, HistoryRefusal> {
        let mut reads = BTreeSet::new();
        for seq in seqs {
            match self.whole(seq)? {
                Stage::Ready(_) => {}
                Stage::Read(more) => reads.extend(more),
            }
        }
        Ok(if reads.is_empty() { Stage::Ready(()) } else { Stage::Read(reads) })
    }

    /// Nothing, once every listed segment was read; one that cannot be read is known as damaged.
    pub(super) fn all_segments(&self) -> Stage<()> {
        let unread = self
            .segments
            .iter()
            .filter(|path| self.cache.segment(path).is_none() && !self.damaged_segments.contains_key(*path));
        let reads: BTreeSet<_> = unread.cloned().map(Read::Segment).collect();
        if reads.is_empty() { Stage::Ready(()) } else { Stage::Read(reads) }
    }

    /// The listed segments that can be read, on the chain or not.
    pub(super) fn cache_segments(&self) -> impl Iterator<Item = &SegmentFacts> {
        self.segments.iter().filter_map(|path| self.cache.segment(path))
    }

    /// `HISTORY`'s newest segment.
    pub(super) fn newest(&self) -> Option<SegmentRef> {
        newest_of(&self.history)
    }

    /// The lowest version from which every root carries the history fields.
    pub(super) fn since(&self) -> Result<Seq, HistoryRefusal> {
        self.catalog.history.as_ref().map(|history| history.since_seq).ok_or(HistoryRefusal::NotOptedIn)
    }

    /// Whether these are the documents of one catalog of one epoch, but for the head's, which the caller looked at.
    pub(super) fn check_ground(&self) -> Result<Stage<()>, HistoryRefusal> {
        self.since()?;
        if self.history.catalog_id != self.catalog.catalog_id {
            return Err(HistoryRefusal::OtherCatalog {
                document: layout::HISTORY.to_owned(),
                found: self.history.catalog_id.clone(),
                expected: self.catalog.catalog_id.clone(),
            });
        }
        let head = ready!(self.stamp(self.head)?).restore_epoch;
        let (catalog, history) = (self.catalog.restore_epoch, self.history.restore_epoch);
        if catalog != history || head != history {
            return Err(HistoryRefusal::UnfinishedRestore { catalog, history, head });
        }
        Ok(Stage::Ready(()))
    }

    /// The segments on the chain, the newest first. Every listed segment was read.
    pub(super) fn chain(&self) -> Result<Vec<&SegmentFacts>, HistoryRefusal> {
        let mut chain: Vec<&SegmentFacts> = Vec::new();
        let mut next = self.newest();
        let mut named_by = layout::HISTORY.to_owned();
        while let Some(SegmentRef { path, sha256 }) = next.take() {
            if let Some(why) = self.segment_damage(&path) {
                return Err(HistoryRefusal::SegmentDamaged { path, why: why.to_owned() });
            }
            let listed = self.segments.contains(&path);
            let Some(facts) = self.cache.segment(&path).filter(|_| listed) else {
                return Err(HistoryRefusal::SegmentMissing { path, named_by });
            };
            if facts.at.sha256 != sha256 {
                let found = facts.at.sha256.clone();
                return Err(HistoryRefusal::SegmentChanged { path, found, expected: sha256, named_by });
            }
            if facts.catalog_id != self.catalog.catalog_id {
                let (found, expected) = (facts.catalog_id.clone(), self.catalog.catalog_id.clone());
                return Err(HistoryRefusal::OtherCatalog { document: path, found, expected });
            }
            named_by = path;
            next = facts.previous.clone();
            chain.push(facts);
        }
        Ok(chain)
    }
}

/// The newest segment that `history` names.
pub(super) fn newest_of(history: &History) -> Option<SegmentRef> {
    let newest = history.newest_segment.clone().zip(history.newest_segment_sha256.clone());
    newest.map(|(path, sha256)| SegmentRef { path, sha256 })
}
