//! Editions of a product on a disk (*edition*): built, sealed, checked, listed, copied, discarded.
//!
//! [`build`] and [`seal`] may be killed anywhere: called again with the same edition id they end where an undisturbed
//! run would have ended. [`seal`] writes the manifest last, and an edition is sealed exactly when its manifest is there.
//! Nothing here removes or rewrites a file in `data/`: what no manifest lists is garbage collection's to delete.

mod build;
mod check;
mod copy;
mod coverage;
mod error;
mod files;
mod fold;
mod lake;
mod layout;
mod list;
mod reader;
mod rows;
mod seal;
mod settle;
mod source;
mod stage;
mod structures;
pub mod testing;
#[cfg(test)]
mod tests;

use engine_rules::activity::ActivityContext;
use engine_rules::clock::Clock;

pub use build::{BoundTable, BuildOrder, Built, BuiltTable, build};
pub use check::{CheckName, CheckOptions, Finding, FindingDetail, Profile, Report, check};
pub use copy::{Copied, copy, files};
pub use error::{ColumnFault, EditionError, UncodedValue};
pub use files::TierRule;
pub use fold::{FoldOrder, Folded, fold};
pub use layout::{EditionFolder, ProductFolder};
pub use list::{EditionState, ListedEdition, discard, list, unsealed};
pub use reader::EditionReader;
pub use seal::{PRODUCER, Phase, SealOrder, Sealed, clear_journal, read_journal, seal};
pub use source::{
    ArtefactSource, ColumnRole, ColumnType, LINE_COLUMN, ObservationColumn, ObservationSource, SourceError, Stop,
};

use crate::duck::DuckSettings;
use crate::fs::Fs;

/// What the operations of this module work with.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// The filesystem.
    pub fs: &'a dyn Fs,
    /// Time.
    pub clock: &'a dyn Clock,
    /// How DuckDB is run.
    pub duck: &'a DuckSettings,
    /// Who is told of progress, and who may cancel.
    pub context: &'a ActivityContext,
}

impl std::fmt::Debug for Tools<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools").field("duck", self.duck).field("context", self.context).finish_non_exhaustive()
    }
}

/// The points at which a test ends the process, in the order in which an undisturbed build and seal pass them.
pub const CRASH_POINTS: &[&str] = &[
    "edition.build.staged",
    "edition.build.directory_created",
    "edition.build.artefacts_written",
    "edition.build.rows_written",
    "edition.seal.journal_written",
    "edition.seal.lake_in_log",
    "edition.seal.lake_settled",
    "edition.seal.availability_written",
    "edition.seal.store_compacted",
    "edition.seal.synced",
    "edition.seal.before_manifest",
    "edition.seal.after_manifest",
];
