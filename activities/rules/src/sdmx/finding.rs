//! What a reader or a check found in structures: data, not an error. Nothing that a reader cannot hold, and nothing
//! that breaks a rule of SDMX, goes without one.

use std::fmt;

use super::model::UrnText;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing was found.
    pub code: FindingCode,
    /// The artefact, by URN; empty where none is known.
    pub urn: UrnText,
    /// Where: a line and path of the message, or a path within the artefact such as `codes[3]`.
    pub place: String,
    /// What was found, what was expected, and what the reader made of it.
    pub message: String,
}

macro_rules! codes {
    ($( $(#[$meta:meta])* $code:ident $text:literal ),+ $(,)?) => {
        /// The kinds of findings, each with a stable text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode { $( $(#[$meta])* $code ),+ }

        impl FindingCode {
            /// The stable text of the code.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$code => $text ),+ }
            }
        }
    };
}

codes! {
    /// Something of the message that the model has no place for.
    NotRepresented "not_represented",
    /// An artefact of a class that the model does not have.
    UnsupportedClass "unsupported_class",
    /// An artefact or item that a reader left out, since it cannot be named.
    LeftOut "left_out",
    /// A value that the message left open and the reader filled.
    Assumed "assumed",
    /// A text without a language, in a format that sets none.
    NoLanguage "no_language",
    /// A language tag that is none.
    BadLanguage "bad_language",
    /// Two texts in one language.
    DuplicateLanguage "duplicate_language",
    /// A name without characters.
    EmptyName "empty_name",
    /// No name at all where there must be one.
    NoName "no_name",
    /// An id that the rules of ids do not allow.
    BadId "bad_id",
    /// Two items of one id.
    DuplicateItem "duplicate_item",
    /// Two artefacts of one URN.
    DuplicateArtefact "duplicate_artefact",
    /// A parent that is not there.
    MissingParent "missing_parent",
    /// An item that is its own ancestor.
    CyclicParent "cyclic_parent",
    /// A reference to what the message does not hold.
    Unresolved "unresolved_reference",
    /// A reference that is no URN.
    BadReference "bad_reference",
    /// A constraint of a component that the structure does not have.
    UnknownComponent "unknown_component",
    /// A code of a constraint, an extension or a map that the list does not have.
    UnknownCode "unknown_code",
    /// A level that the hierarchy does not have.
    UnknownLevel "unknown_level",
    /// An artefact whose content is elsewhere (`isExternalReference`).
    Stub "stub",
    /// A partial item scheme without items.
    EmptyPartial "empty_partial",
    /// A control character.
    ControlCharacter "control_character",
    /// A version that is none.
    BadVersion "bad_version",
    /// A value of the wrong kind.
    BadValue "bad_value",
    /// A URN that the message gives and that is not the artefact's or the item's.
    UrnMismatch "urn_mismatch",
    /// A message that carries a footer: a service says that something went wrong.
    Footer "footer",
    /// More findings than are kept.
    More "more",
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Findings, at most [`Findings::LIMIT`] of them, so that a broken message of any size leaves a bounded report.
#[derive(Debug, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    more: u64,
}

impl Findings {
    /// How many are kept: more than a person reads, and few enough to hold.
    pub const LIMIT: usize = 10_000;

    /// How long each text of a finding may be, in bytes: names of a message may be as long as it likes.
    pub const TEXT_BYTES: usize = 1_000;

    /// Takes a finding. What is longer than [`Self::TEXT_BYTES`] is cut.
    pub fn add(&mut self, mut finding: Finding) {
        if self.kept.len() < Self::LIMIT {
            for text in [&mut finding.urn, &mut finding.place, &mut finding.message] {
                if text.len() > Self::TEXT_BYTES {
                    let end = (0..=Self::TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
                    text.truncate(end);
                    text.push('…');
                    text.shrink_to_fit();
                }
            }
            self.kept.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// Takes findings.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// The URN of the findings from the place `from` on that have none yet.
    pub fn name(&mut self, from: usize, urn: &str) {
        for finding in self.kept.iter_mut().skip(from).filter(|finding| finding.urn.is_empty()) {
            urn.clone_into(&mut finding.urn);
        }
    }

    /// How many are kept by now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The findings in the order in which they were found, and one that tells how many more there were.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<Finding> {
        if self.more > 0 {
            self.kept.push(Finding {
                code: FindingCode::More,
                urn: String::new(),
                place: String::new(),
                message: format!("{} more findings are not listed; mend those that are and look again", self.more),
            });
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_bounded_and_says_so() {
        let mut findings = Findings::default();
        let one = |n: usize| Finding {
            code: FindingCode::BadId,
            urn: String::new(),
            place: n.to_string(),
            message: String::new(),
        };
        findings.extend((0..Findings::LIMIT + 7).map(one));
        findings.name(Findings::LIMIT - 1, "urn:x");
        let found = findings.into_vec();
        assert_eq!(found.len(), Findings::LIMIT + 1);
        assert_eq!((found[0].urn.as_str(), found[Findings::LIMIT - 1].urn.as_str()), ("", "urn:x"));
        let last = found.last().unwrap();
        assert_eq!((last.code.as_str(), last.message.starts_with("7 more")), ("more", true));
        let mut findings = Findings::default();
        findings.add(Finding { place: "é".repeat(5_000), ..one(0) });
        assert_eq!(findings.into_vec()[0].place.len(), Findings::TEXT_BYTES + "…".len());
    }
}
