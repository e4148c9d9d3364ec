//! How a record is cut into cells: by the rule of CSV, and where a table lost its inner quotes, by the borders of its
//! cells.

/// A cell as a range of bytes of its record's text.
pub(super) type Span = (u32, u32);

/// What [`split_strict`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// A record of `len` bytes with its line end. `doubled` says that a cell holds doubled quotes.
    Done { len: usize, doubled: bool },
    /// The bytes end before the record does.
    NeedMore,
    /// A quote stands where CSV allows none.
    Malformed,
}

/// Cuts the record at the start of `bytes` by the rule of CSV: cells may be quoted, and a quote in a quoted cell is
/// doubled. `at_end` says that no bytes follow. LF and CRLF end a record.
pub(super) fn split_strict(bytes: &[u8], delimiter: u8, at_end: bool, cells: &mut Vec<Span>) -> Split {
    cells.clear();
    let mut doubled = false;
    let mut at = 0;
    loop {
        if bytes.get(at) == Some(&b'"') {
            at += 1;
            let begin = at;
            loop {
                let Some(offset) = bytes[at..].iter().position(|b| *b == b'"') else {
                    return if at_end { Split::Malformed } else { Split::NeedMore };
                };
                let quote = at + offset;
                match bytes.get(quote + 1) {
                    Some(b'"') => {
                        doubled = true;
                        at = quote + 2;
                    }
                    Some(b) if *b == delimiter => {
                        cells.push(span(begin, quote));
                        at = quote + 2;
                        break;
                    }
                    Some(b'\n') => {
                        cells.push(span(begin, quote));
                        return Split::Done { len: quote + 2, doubled };
                    }
                    Some(b'\r') => match bytes.get(quote + 2) {
                        Some(b'\n') => {
                            cells.push(span(begin, quote));
                            return Split::Done { len: quote + 3, doubled };
                        }
                        None if !at_end => return Split::NeedMore,
                        None => {
                            cells.push(span(begin, quote));
                            return Split::Done { len: quote + 2, doubled };
                        }
                        Some(_) => return Split::Malformed,
                    },
                    None if at_end => {
                        cells.push(span(begin, quote));
                        return Split::Done { len: quote + 1, doubled };
                    }
                    None => return Split::NeedMore,
                    Some(_) => return Split::Malformed,
                }
            }
        } else {
            let begin = at;
            let Some(offset) = bytes[at..].iter().position(|b| *b == delimiter || *b == b'\n') else {
                if !at_end {
                    return Split::NeedMore;
                }
                let end = bytes.len() - usize::from(bytes[begin..].last() == Some(&b'\r'));
                cells.push(span(begin, end));
                return Split::Done { len: bytes.len(), doubled };
            };
            let stop = at + offset;
            if bytes[stop] == b'\n' {
                let end = stop - usize::from(stop > begin && bytes[stop - 1] == b'\r');
                cells.push(span(begin, end));
                return Split::Done { len: stop + 1, doubled };
            }
            cells.push(span(begin, stop));
            at = stop + 1;
        }
    }
}

/// Records are bounded far below 4 GiB by their readers.
#[allow(clippy::cast_possible_truncation, reason = "a record is at most a few MiB")]
const fn span(begin: usize, end: usize) -> Span {
    (begin as u32, end as u32)
}

/// What follows a quote that ends a cell, when quotes within cells were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Border {
    /// The delimiter and the next cell's opening quote: each cell is quoted, as in a data file.
    Quoted,
    /// The delimiter and anything but a space: cells may stand without quotes, as in a metadata file.
    Any,
}

/// Cuts `text`, one record without its line end, by the borders of its cells: a run of quotes ends a cell when a border
/// or the end of the text follows it, and is text otherwise.
pub(super) fn split_by_borders(text: &str, delimiter: u8, border: Border) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut cells = Vec::new();
    let mut at = 0;
    loop {
        if bytes.get(at) == Some(&b'"') {
            let mut cell = String::new();
            let mut begin = at + 1;
            let mut scan = begin;
            loop {
                let Some(offset) = bytes[scan..].iter().position(|b| *b == b'"') else {
                    cell.push_str(&text[begin..]);
                    cells.push(cell);
                    return cells;
                };
                let quote = scan + offset;
                let run = bytes[quote..].iter().take_while(|b| **b == b'"').count();
                let after = quote + run;
                let last = after >= bytes.len();
                let closes = last
                    || (bytes[after] == delimiter
                        && match (border, bytes.get(after + 1)) {
                            (Border::Quoted, next) => next == Some(&b'"'),
                            (Border::Any, next) => next != Some(&b' '),
                        });
                // Pairs stand for one quote each; a single one was never doubled.
                let kept = if closes { run - 1 } else { run };
                cell.push_str(&text[begin..quote]);
                cell.extend(std::iter::repeat_n('"', kept.div_ceil(2)));
                if last && closes {
                    cells.push(cell);
                    return cells;
                }
                if closes {
                    cells.push(cell);
                    at = after + 1;
                    break;
                }
                begin = after;
                scan = after;
            }
        } else {
            let stop = bytes[at..].iter().position(|b| *b == delimiter).map(|offset| at + offset);
            cells.push(text[at..stop.unwrap_or(bytes.len())].to_owned());
            match stop {
                Some(stop) => at = stop + 1,
                None => return cells,
            }
        }
    }
}

/// `text` with each doubled quote made one.
pub(super) fn undoubled(text: &str) -> String {
    text.replace("\"\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(text: &str) -> Option<Vec<String>> {
        let mut cells = Vec::new();
        match split_strict(text.as_bytes(), b',', true, &mut cells) {
            Split::Done { .. } => {
                Some(cells.iter().map(|(begin, end)| undoubled(&text[*begin as usize..*end as usize])).collect())
            }
            Split::NeedMore | Split::Malformed => None,
        }
    }

    #[test]
    fn a_record_is_cut_by_the_rule_of_csv() {
        let table: [(&str, &[&str]); 8] = [
            ("\"a\",\"b\"\n", &["a", "b"]),
            ("\"a\",\"b\"\r\n", &["a", "b"]),
            ("\"a\",\"\"", &["a", ""]),
            ("a,,b\r\n", &["a", "", "b"]),
            ("\"a \"\"b\"\" c\",1\n", &["a \"b\" c", "1"]),
            ("\"a\n\",\"b\"\n", &["a\n", "b"]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\n", &[""]),
        ];
        for (text, expected) in table {
            assert_eq!(strict(text).as_deref().unwrap(), expected, "{text:?}");
        }
        for malformed in ["\"a \"b\" c\",\"d\"\n", "\"a", "\"a\"b\n"] {
            assert_eq!(strict(malformed), None, "{malformed:?}");
        }
    }

    #[test]
    fn a_record_that_goes_on_asks_for_more() {
        let mut cells = Vec::new();
        for text in ["", "\"a", "\"a\"", "\"a\"\r", "\"a\",", "ab"] {
            assert_eq!(split_strict(text.as_bytes(), b',', false, &mut cells), Split::NeedMore, "{text:?}");
        }
    }

    #[test]
    fn lost_quotes_are_told_from_borders() {
        let table: [(&str, &[&str]); 5] = [
            ("\"a \"b\" c\",\"d\"", &["a \"b\" c", "d"]),
            ("\"a \"b\"\",\"d\"", &["a \"b\"", "d"]),
            ("\"a, \"b\", c\",\"d\"", &["a, \"b\", c", "d"]),
            ("\"a \"\"b\"\" c\",\"\",\"d\"", &["a \"b\" c", "", "d"]),
            ("\"pipe 5\"\",\"x\"", &["pipe 5\"", "x"]),
        ];
        for (text, expected) in table {
            assert_eq!(split_by_borders(text, b',', Border::Quoted), expected, "{text:?}");
        }
        assert_eq!(split_by_borders("\"a \"b\" c\",1,,\"d\",", b',', Border::Any), ["a \"b\" c", "1", "", "d", ""]);
    }
}
