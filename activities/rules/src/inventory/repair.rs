//! The narrow repair (*catalog* §6.7, D11, D12): what becomes of a seal whose run was interrupted.

use std::collections::BTreeMap;

use super::change::Mark;
use super::root::Seq;
use crate::ids::EditionId;

/// Where the catalog is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// On this disk: the writer of the journal may record.
    Local,
    /// In a container, by the release job alone: nothing is recorded here (D12).
    Server,
}

/// An entry of a product's seal journal, and whether its seal reached the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The edition whose seal began.
    pub edition_id: EditionId,
    /// Whether its manifest is there, so that the seal was done.
    pub has_manifest: bool,
}

/// What is to be done about one entry of the seal journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The seal did not reach the manifest. Its run seals again; the entry stays.
    Unfinished {
        /// The edition.
        edition: EditionId,
    },
    /// The head knows the edition: remove the journal's entry, change nothing else.
    Clear {
        /// The edition.
        edition: EditionId,
        /// What the head knows of it.
        mark: Mark,
    },
    /// An earlier version named the edition and the head does not: somebody took it out. It is never recorded again;
    /// remove the journal's entry and say so.
    Gone {
        /// The edition.
        edition: EditionId,
        /// The newest version that named it.
        seq: Seq,
    },
    /// Sealed by this writer and named by no version: run `check(at=publish)`, then record it with `release_at` null;
    /// a refusal for good by either removes the journal's entry.
    Record {
        /// The edition.
        edition: EditionId,
    },
    /// The same on a server, where nothing is recorded here: name the run to resume.
    ResumeRun {
        /// The edition.
        edition: EditionId,
    },
}

/// What is to be done about each entry of one product's seal journal, oldest edition first, since one may be built on
/// another. `head` is what the newest version knows of the product's editions, states and tombstones; `named` gives the
/// newest earlier version that names an edition, for those that the head does not know.
///
/// Only what the journal lists is looked at: a scan of the manifests would release withdrawn editions again.
#[must_use]
pub fn repair_plan(
    journal: &[Sealed],
    head: &BTreeMap<EditionId, Mark>,
    named: &BTreeMap<EditionId, Seq>,
    mode: Mode,
) -> Vec<Repair> {
    let mut journal: Vec<_> = journal.iter().collect();
    journal.sort_by(|a, b| a.edition_id.cmp(&b.edition_id));
    journal.into_iter().map(|sealed| repair(sealed, head, named, mode)).collect()
}

fn repair(sealed: &Sealed, head: &BTreeMap<EditionId, Mark>, named: &BTreeMap<EditionId, Seq>, mode: Mode) -> Repair {
    let edition = sealed.edition_id.clone();
    if let Some(mark) = head.get(&edition) {
        return Repair::Clear { edition, mark: *mark };
    }
    if let Some(seq) = named.get(&edition) {
        return Repair::Gone { edition, seq: *seq };
    }
    match (sealed.has_manifest, mode) {
        (false, Mode::Local | Mode::Server) => Repair::Unfinished { edition },
        (true, Mode::Local) => Repair::Record { edition },
        (true, Mode::Server) => Repair::ResumeRun { edition },
    }
}
