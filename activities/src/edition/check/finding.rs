//! What a check found.

use std::collections::BTreeMap;
use std::fmt;

use catalog_rules::manifest::ManifestProblem;
use engine_rules::failure::ActivityError as _;
use engine_rules::failure::Disposition;

use super::cause;
use crate::duck::DuckError;
use crate::edition::error::{EditionError, UncodedValue, uncoded_text};

/// Where a check runs (*edition* §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Where the edition is sealed: everything, hashed in full.
    Publish,
    /// Where a copy lands: the edition's files hashed, data files by size.
    Receive,
    /// Each time a server opens it: sizes only.
    Open,
}

impl Profile {
    /// The specification's word: `publish`, `receive` or `open`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Receive => "receive",
            Self::Open => "open",
        }
    }
}

/// The checks, in the order in which they run. The manifest's versions are checked a second time under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckName {
    /// The manifest parses, and its versions allow the files to be opened.
    Manifest,
    /// Every listed file is as it is listed, and no other is there.
    Files,
    /// The content is that of an earlier manifest.
    Expect,
    /// The lake references existing, listed data files, and neither delete files nor rows of its own.
    Lake,
    /// The store's bindings are the manifest's, with their row counts.
    Bindings,
    /// Every reference in the store resolves.
    References,
    /// Every fingerprint, computed again, is the manifest's.
    Fingerprints,
    /// Coded columns hold codes, and the stored availability is the data's.
    Availability,
}

impl CheckName {
    /// The specification's word, such as `files`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Files => "files",
            Self::Expect => "expect",
            Self::Lake => "lake",
            Self::Bindings => "bindings",
            Self::References => "references",
            Self::Fingerprints => "fingerprints",
            Self::Availability => "availability",
        }
    }
}

/// One thing that is wrong with an edition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check that found it.
    pub check: CheckName,
    /// What it is about: a file's path, a field of the manifest, a URN, a column.
    pub subject: String,
    /// What is wrong.
    pub detail: FindingDetail,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (edition §6): {}: {}", self.check.as_str(), self.subject, self.detail)
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingDetail {
    /// There is no manifest.
    Unsealed,
    /// The manifest contradicts its format.
    ManifestProblem(ManifestProblem),
    /// A document or database cannot be read; why.
    Unreadable(String),
    /// A listed file, or something else that must be there, is not.
    Missing,
    /// A file is there that the manifest does not list.
    Unlisted,
    /// A write-ahead log is beside a database: it was not checkpointed before the seal.
    WriteAheadLog,
    /// What is there is not what is recorded.
    Differs {
        /// What is compared, as the beginning of a sentence: `the size is`.
        what: &'static str,
        /// What is there.
        found: String,
        /// What is recorded.
        expected: String,
    },
    /// The current snapshot has a delete file.
    DeleteFile,
    /// The lake's catalog holds rows itself.
    InlinedRows(u64),
    /// A reference names nothing in the store.
    Unresolved {
        /// What the reference is for.
        role: String,
        /// What it names.
        target: String,
    },
    /// A coded column holds what is no code.
    Uncoded {
        /// The column.
        column: String,
        /// The codelist.
        enumeration: String,
        /// Some of the values.
        values: Vec<UncodedValue>,
        /// How many more there are.
        more: u64,
    },
}

impl fmt::Display for FindingDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsealed => f.write_str("the edition is not sealed: there is no manifest"),
            Self::ManifestProblem(problem) => problem.fmt(f),
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Self::Missing => f.write_str("is missing"),
            Self::Unlisted => f.write_str("is not listed in the manifest"),
            Self::WriteAheadLog => {
                f.write_str("is a write-ahead log: the database was not checkpointed before the manifest was written")
            }
            Self::Differs { what, found, expected } => write!(f, "{what} {found}, expected {expected}"),
            Self::DeleteFile => f.write_str("is a delete file of the current snapshot; expected none"),
            Self::InlinedRows(rows) => write!(f, "holds {rows} rows in the catalog; expected none"),
            Self::Unresolved { role, target } => write!(f, "its {role} is {target}, which the store does not hold"),
            Self::Uncoded { column, enumeration, values, more } => {
                f.write_str(&uncoded_text("the table", column, enumeration, values, *more))
            }
        }
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Where it ran.
    pub at: Profile,
    /// The checks that ran, in order.
    pub checked: Vec<CheckName>,
    /// Everything that was found, in order.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// The findings of a check that runs.
pub struct Findings {
    report: Report,
    check: CheckName,
}

impl Findings {
    pub fn new(at: Profile) -> Self {
        Self { report: Report { at, checked: Vec::new(), findings: Vec::new() }, check: CheckName::Manifest }
    }

    /// What is found from here on belongs to `check`.
    pub fn begin(&mut self, check: CheckName) {
        self.check = check;
        if !self.report.checked.contains(&check) {
            self.report.checked.push(check);
        }
    }

    pub fn add(&mut self, subject: impl Into<String>, detail: FindingDetail) {
        self.report.findings.push(Finding { check: self.check, subject: subject.into(), detail });
    }

    pub fn differs(
        &mut self,
        subject: impl Into<String>,
        what: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add(subject, FindingDetail::Differs { what, found: found.into(), expected: expected.into() });
    }

    /// Compares two lists of subjects and texts: each subject must be in both with the same text.
    pub fn same_entries(
        &mut self,
        what: &'static str,
        found: impl IntoIterator<Item = (String, String)>,
        expected: impl IntoIterator<Item = (String, String)>,
    ) {
        let mut found: BTreeMap<String, String> = found.into_iter().collect();
        for (subject, expected) in expected {
            match found.remove(&subject) {
                None => self.differs(subject, what, "nothing", expected),
                Some(text) if text != expected => self.differs(subject, what, text, expected),
                Some(_) => {}
            }
        }
        for (subject, text) in found {
            self.differs(subject, what, text, "nothing");
        }
    }

    /// Turns what a store file did to a check into a finding: `false` when it ends the run.
    pub fn readable<T, E: Into<EditionError>>(&mut self, file: &str, read: Result<T, E>) -> Result<bool, EditionError> {
        match read {
            Ok(_) => Ok(true),
            Err(error) => self.unreadable(file, error.into()).map(|()| false),
        }
    }

    /// A finding for an edition's fault; the error itself for one of the surroundings.
    pub fn unreadable(&mut self, file: &str, error: EditionError) -> Result<(), EditionError> {
        match error {
            EditionError::Duck(DuckError::WriteAheadLog { .. }) => self.add(file, FindingDetail::WriteAheadLog),
            EditionError::Cancelled
            | EditionError::Duck(DuckError::MissingExtension { .. } | DuckError::Stopped { .. }) => return Err(error),
            error if error.disposition() == Disposition::Operator => return Err(error),
            error => self.add(file, FindingDetail::Unreadable(cause(&error))),
        }
        Ok(())
    }

    pub fn report(self) -> Report {
        self.report
    }
}
