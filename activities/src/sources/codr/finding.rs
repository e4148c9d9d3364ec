//! What a person should know about a source that was accepted all the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// No metadata CSV was at hand: members are taken from the coordinates and labels of the data, without parents.
    NoMetadata,
    /// The metadata CSV lists no members: they are taken from the data, without parents.
    MetadataWithoutMembers,
    /// A block of the metadata CSV is not known, and was passed over.
    UnknownBlock,
    /// A record lost its inner quotes; its cells were told apart by their borders.
    LostQuotes,
    /// A member is called otherwise in the data than in the metadata CSV, or than earlier in the data.
    LabelDiffers,
    /// A unit has two texts in one file.
    UnitTextDiffers,
    /// A scalar factor's text is not that of its id; the id holds.
    ScalarTextDiffers,
    /// A value has another number of decimals than its row says.
    DecimalsDiffer,
    /// A row has neither a value nor a status.
    BlankWithoutStatus,
    /// A value stands beside a status that says that there is none.
    ValueBesideStatus,
    /// A period `YYYY/YYYY` was written as the time range of whole years that it names.
    PeriodSpan,
    /// A member's parent is not in the member list; the member became a root.
    MissingParent,
    /// A member has no name; its id stands in.
    UnnamedMember,
    /// Notes or corrections beyond the bound for annotations were left out.
    NotesLeftOut,
}

impl FindingKind {
    /// The stable, dotted code of this kind.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoMetadata => "codr.no_metadata",
            Self::MetadataWithoutMembers => "codr.metadata_without_members",
            Self::UnknownBlock => "codr.unknown_block",
            Self::LostQuotes => "codr.lost_quotes",
            Self::LabelDiffers => "codr.label_differs",
            Self::UnitTextDiffers => "codr.unit_text_differs",
            Self::ScalarTextDiffers => "codr.scalar_text_differs",
            Self::DecimalsDiffer => "codr.decimals_differ",
            Self::BlankWithoutStatus => "codr.blank_without_status",
            Self::ValueBesideStatus => "codr.value_beside_status",
            Self::PeriodSpan => "codr.period_span",
            Self::MissingParent => "codr.missing_parent",
            Self::UnnamedMember => "codr.unnamed_member",
            Self::NotesLeftOut => "codr.notes_left_out",
        }
    }
}

/// One finding: recorded with the result of the step, shown to a person, and no obstacle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was noticed.
    pub kind: FindingKind,
    /// The file, as `archive.zip!member.csv` for a member of an archive.
    pub file: String,
    /// The first physical line at which it was noticed, from 1; none when it is about the whole file.
    pub line: Option<u64>,
    /// How often it was noticed.
    pub count: u64,
    /// What was found and what was expected, at the first place.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        write!(f, ": {} ({}", self.detail, self.kind.code())?;
        if self.count > 1 {
            write!(f, ", {} times", self.count)?;
        }
        f.write_str(")")
    }
}

/// How many findings of one kind are told one by one; further ones are counted in the last of them.
const TOLD_PER_KIND: usize = 50;

/// Gathers findings: one entry per kind and subject, bounded, so that a strange table of 200 million rows does not
/// yield 200 million findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    seen: BTreeMap<(FindingKind, Arc<str>, u64), usize>,
    told: BTreeMap<FindingKind, usize>,
    list: Vec<Finding>,
}

impl Findings {
    /// Notes one occurrence. `subject` tells apart what is counted together, such as one member of one dimension.
    pub(super) fn note(
        &mut self,
        kind: FindingKind,
        file: &Arc<str>,
        line: Option<u64>,
        subject: u64,
        detail: impl FnOnce() -> String,
    ) {
        let key = (kind, Arc::clone(file), subject);
        if let Some(at) = self.seen.get(&key) {
            self.list[*at].count += 1;
            return;
        }
        let told = self.told.entry(kind).or_default();
        if *told == TOLD_PER_KIND {
            if let Some(last) = self.list.iter_mut().rev().find(|finding| finding.kind == kind) {
                last.count += 1;
            }
            return;
        }
        *told += 1;
        self.seen.insert(key, self.list.len());
        self.list.push(Finding { kind, file: file.to_string(), line, count: 1, detail: detail() });
    }

    pub(super) fn into_list(self) -> Vec<Finding> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_and_bounded() {
        let file: Arc<str> = "a.csv".into();
        let mut findings = Findings::default();
        for line in 0..1000 {
            findings.note(FindingKind::LostQuotes, &file, Some(line), 0, || "x".into());
            findings.note(FindingKind::LabelDiffers, &file, Some(line), line, || "y".into());
        }
        let list = findings.into_list();
        assert_eq!(list.len(), 1 + TOLD_PER_KIND);
        assert_eq!(list[0].count, 1000);
        assert_eq!(list[0].line, Some(0));
        let labels: u64 = list.iter().filter(|f| f.kind == FindingKind::LabelDiffers).map(|f| f.count).sum();
        assert_eq!(labels, 1000);
    }
}
