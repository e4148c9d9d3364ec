//! Reference periods as SDMX time periods.

/// What a reference period became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Period {
    /// `YYYY`, `YYYY-MM` or `YYYY-MM-DD`: the same text is the SDMX time period.
    Same,
    /// `YYYY/YYYY`: a time range of the whole years that it names.
    Span {
        /// The first year.
        first: u32,
        /// How many years.
        years: u32,
    },
}

/// What `raw` means, or none when it has none of the four shapes.
///
/// `2021/2022` is a fiscal or school year, or a span of several; which months it covers only the table's notes say.
/// It becomes the SDMX time range that begins with its first year and covers the years that it names, here
/// `2021-01-01/P2Y`: each text has one range and each range one text, so nothing is lost and it sorts among the others.
pub(super) fn parse(raw: &str) -> Option<Period> {
    let bytes = raw.as_bytes();
    let year = number(bytes, 0, 4)?;
    match (bytes.len(), bytes.get(4)) {
        (4, None) => Some(Period::Same),
        (7, Some(b'-')) => month(bytes).map(|_| Period::Same),
        (10, Some(b'-')) if bytes[7] == b'-' => {
            let day = number(bytes, 8, 2)?;
            (1..=days_in(year, month(bytes)?)).contains(&day).then_some(Period::Same)
        }
        (9, Some(b'/')) => {
            let last = number(bytes, 5, 4)?;
            (last > year).then(|| Period::Span { first: year, years: last - year + 1 })
        }
        (_, _) => None,
    }
}

fn number(bytes: &[u8], at: usize, digits: usize) -> Option<u32> {
    bytes
        .get(at..at + digits)?
        .iter()
        .try_fold(0, |number, b| b.is_ascii_digit().then(|| number * 10 + u32::from(b - b'0')))
}

fn month(bytes: &[u8]) -> Option<u32> {
    number(bytes, 5, 2).filter(|month| (1..=12).contains(month))
}

const fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(400) || (year.is_multiple_of(4) && !year.is_multiple_of(100)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Period {
    /// Writes the SDMX time period of `raw` behind `out`.
    pub(super) fn write(self, raw: &str, out: &mut String) {
        use std::fmt::Write as _;
        match self {
            Self::Same => out.push_str(raw),
            // Writing into a String cannot fail.
            Self::Span { first, years } => {
                let _ = write!(out, "{first:04}-01-01/P{years}Y");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_shapes_are_read_and_nothing_else() {
        let table = [
            ("2021", "2021"),
            ("1946-01", "1946-01"),
            ("2024-02-29", "2024-02-29"),
            ("2000-02-29", "2000-02-29"),
            ("2021/2022", "2021-01-01/P2Y"),
            ("2016/2021", "2016-01-01/P6Y"),
        ];
        for (raw, expected) in table {
            let mut out = String::new();
            parse(raw).unwrap().write(raw, &mut out);
            assert_eq!(out, expected);
        }
        for bad in [
            "",
            "21",
            "20210",
            "2021-1",
            "2021-13",
            "2021-00",
            "2023-02-29",
            "1900-02-29",
            "2021-04-31",
            "2021/2021",
            "2022/2021",
            "2021/22",
            "2021-Q1",
            "2021-01-01T00:00",
            "２０２１",
            "2021-01-",
            "+021",
            "2021/20222",
        ] {
            assert_eq!(parse(bad), None, "{bad:?} passed");
        }
    }
}
