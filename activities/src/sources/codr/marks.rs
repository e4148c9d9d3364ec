//! Statuses and symbols: what a table says beside or instead of a value.

/// The codes that a row's marks stand for: those of [`super::frozen`]'s lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks {
    /// The status, as a code of the list of statuses.
    pub(super) status: Option<&'static str>,
    /// The symbol, as a code of the list of symbols.
    pub(super) symbol: Option<&'static str>,
    /// Whether the series is marked as terminated.
    pub(super) terminated: bool,
}

/// The marks that are read, for a message.
pub(super) const KNOWN: &str =
    "blank, .., <LOD, 0s, A, B, C, D, E, F, ..., x, p, r, t, at most one status and one symbol";

/// The code of the status that is written `text`. `..`, `...` and `<LOD` are no identifiers of SDMX, so they have
/// codes of their own; the lists keep how each is written.
fn status(text: &str) -> Option<&'static str> {
    Some(match text {
        ".." => "NOT_AVAILABLE",
        "..." => "NOT_APPLICABLE",
        "<LOD" | "<LDD" => "BELOW_LOD",
        "0s" => "0s",
        "A" => "A",
        "B" => "B",
        "C" => "C",
        "D" => "D",
        "E" => "E",
        "F" => "F",
        "x" | "X" => "x",
        _ => return None,
    })
}

fn symbol(text: &str) -> Option<&'static str> {
    Some(match text {
        "p" => "p",
        "r" => "r",
        _ => return None,
    })
}

impl Marks {
    /// Whether the status says that there is no value.
    pub(super) fn without_value(self) -> bool {
        matches!(self.status, Some("NOT_AVAILABLE" | "x" | "F"))
    }
}

/// The marks written in `text`, one or several with commas between; none when one is not known, or when two statuses
/// or two symbols are given.
pub(super) fn parse(text: &str) -> Option<Marks> {
    let mut marks = Marks::default();
    for mark in text.split(',').map(str::trim).filter(|mark| !mark.is_empty()) {
        if let Some(code) = symbol(mark) {
            if marks.symbol.replace(code).is_some() {
                return None;
            }
        } else if mark == "t" {
            marks.terminated = true;
        } else if marks.status.replace(status(mark)?).is_some() {
            return None;
        }
    }
    Some(marks)
}

#[cfg(test)]
mod tests {
    use super::super::frozen;
    use super::*;

    #[test]
    fn marks_are_codes_of_the_frozen_lists() {
        let statuses = frozen::statuses();
        for text in ["..", "...", "<LOD", "<LDD", "0s", "A", "B", "C", "D", "E", "F", "x", "X"] {
            let code = parse(text).unwrap().status.unwrap();
            assert!(statuses.codes.iter().any(|known| known.id == code), "{code} is in no list");
        }
        assert_eq!(parse("r,E"), Some(Marks { status: Some("E"), symbol: Some("r"), terminated: false }));
        assert_eq!(parse(" p "), Some(Marks { symbol: Some("p"), ..Marks::default() }));
        assert_eq!(parse("t"), Some(Marks { terminated: true, ..Marks::default() }));
        assert_eq!(parse(""), Some(Marks::default()));
        for bad in ["z", "A,B", "p,r", "....", "a"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
