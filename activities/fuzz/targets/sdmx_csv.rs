//! SDMX-CSV, with components coded and not.
#![no_main]

use activities::sources::sdmx::csv::{Cell, Components, CsvReader, values};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let ids = ["FREQ", "GEO", "TIME_PERIOD", "OBS_VALUE", "NOTE"];
    let components = Components::new(ids.iter().map(|id| ((*id).to_owned(), id.len() < 5)));
    let Ok(mut reader) = CsvReader::open(bytes, &components) else { return };
    let between = reader.header().between_values.unwrap_or(';');
    let width = reader.header().components().count();
    while let Ok(Some(row)) = reader.next_row() {
        assert_eq!(row.cells.len(), width);
        for cell in &row.cells {
            if let Cell::Value(text) = cell {
                assert!(!values(text, between).is_empty());
            }
        }
    }
});
