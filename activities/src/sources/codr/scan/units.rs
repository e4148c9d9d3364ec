//! Units of measure as the rows name them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::finding::{FindingKind, Findings};

/// The units of one file: id to text. It grows with the units of the table, of which there are a few hundred at most.
#[derive(Debug, Default)]
pub(in super::super) struct Units {
    pub(in super::super) texts: BTreeMap<u32, String>,
    last: (String, String),
}

impl Units {
    /// Takes the unit of a row: none when the row has none, an error when `id` is no number.
    pub(super) fn take<'a>(
        &mut self,
        id: &'a str,
        text: &str,
        file: &Arc<str>,
        line: u64,
        findings: &mut Findings,
    ) -> Result<Option<&'a str>, ()> {
        if id == self.last.0 && text == self.last.1 {
            return Ok((!id.is_empty()).then_some(id));
        }
        let plain = text.trim();
        if id.is_empty() {
            return if plain.is_empty() { Ok(None) } else { Err(()) };
        }
        let canonical = id.bytes().all(|b| b.is_ascii_digit()) && (id == "0" || !id.starts_with('0'));
        let number: u32 = if canonical { id.parse().map_err(|_| ())? } else { return Err(()) };
        match self.texts.get(&number) {
            None => {
                self.texts.insert(number, plain.to_owned());
            }
            Some(known) if known == plain => {}
            Some(known) => {
                findings.note(FindingKind::UnitTextDiffers, file, Some(line), u64::from(number), || {
                    format!("unit {number} is {plain:?} here and {known:?} before; the first text holds")
                });
            }
        }
        self.last.0.clear();
        self.last.0.push_str(id);
        self.last.1.clear();
        self.last.1.push_str(text);
        Ok(Some(id))
    }
}
