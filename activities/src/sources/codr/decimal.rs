//! Values as exact decimal text.

/// A value: digits before and after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digits {
    /// How many digits stand before the point, without leading zeros.
    pub(super) integer: u32,
    /// How many digits stand after the point.
    pub(super) scale: u32,
}

/// Reads the plain decimal `raw` whose point is `point` and writes it behind `out` with `.` for the point. None for
/// anything else: exponents, thousands separators, spaces, the other language's point.
pub(super) fn normalise(raw: &str, point: u8, out: &mut String) -> Option<Digits> {
    let unsigned = raw.strip_prefix('-').unwrap_or(raw);
    let bytes = unsigned.as_bytes();
    let before = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let scale = match bytes.get(before) {
        None => 0,
        Some(b) if *b == point => {
            let after = &bytes[before + 1..];
            if after.is_empty() || !after.iter().all(u8::is_ascii_digit) {
                return None;
            }
            after.len()
        }
        Some(_) => return None,
    };
    if before + scale == 0 {
        return None;
    }
    let zeros = bytes[..before].iter().take_while(|b| **b == b'0').count();
    if raw.len() > unsigned.len() {
        out.push('-');
    }
    // Old tables write .5 for 0.5.
    out.push_str(if before == 0 { "0" } else { &unsigned[..before] });
    if scale > 0 {
        out.push('.');
        out.push_str(&unsigned[before + 1..]);
    }
    Some(Digits { integer: u32::try_from(before - zeros).ok()?, scale: u32::try_from(scale).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str, point: u8) -> Option<(String, u32, u32)> {
        let mut out = String::new();
        normalise(raw, point, &mut out).map(|digits| (out, digits.integer, digits.scale))
    }

    #[test]
    fn plain_decimals_are_kept_digit_for_digit() {
        let table = [
            ("0", "0", 0, 0),
            ("-0.0", "-0.0", 0, 1),
            ("421500", "421500", 6, 0),
            ("98.84069746", "98.84069746", 2, 8),
            ("0.00000000", "0.00000000", 0, 8),
            (".5", "0.5", 0, 1),
            ("-.50", "-0.50", 0, 2),
            ("007.10", "007.10", 1, 2),
        ];
        for (raw, text, integer, scale) in table {
            assert_eq!(read(raw, b'.'), Some((text.to_owned(), integer, scale)), "{raw}");
            let french = raw.replace('.', ",");
            assert_eq!(read(&french, b','), Some((text.to_owned(), integer, scale)), "{french}");
        }
    }

    #[test]
    fn anything_else_is_no_value() {
        for bad in ["", "-", ".", "1.", "1e5", "1,234", "1 234", "+1", "--1", "0x1", "NaN", "１", "1.2.3", "1\u{a0}234"]
        {
            assert_eq!(read(bad, b'.'), None, "{bad:?} passed");
        }
        for bad in ["1.234", "1.234,5", "1,2,3", "1,"] {
            assert_eq!(read(bad, b','), None, "{bad:?} passed as French");
        }
    }
}
