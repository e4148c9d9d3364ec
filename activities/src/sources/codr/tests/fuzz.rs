//! Whatever the bytes, the source is read or refused; it never panics.

use proptest::prelude::*;

use super::*;

/// Changes to a text: where, in thousandths of its length, and what is put there instead of how many bytes.
fn mutated(text: &str, changes: &[(usize, usize, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (at, remove, insert) in changes {
        let at = at * bytes.len() / 1000;
        let end = (at + remove).min(bytes.len());
        bytes.splice(at..end, insert.iter().copied());
    }
    bytes
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..4),
        prop_oneof![
            Just("\""),
            Just("\"\""),
            Just("\",\""),
            Just("\n"),
            Just("\r\n"),
            Just("\n\n"),
            Just(","),
            Just(";"),
            Just("1.1"),
            Just("999999999"),
            Just("\u{feff}"),
            Just("é"),
            Just("[1]"),
            Just("Symbol"),
            Just("99999999999999999999999999999999999999999"),
        ]
        .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn changes() -> impl Strategy<Value = Vec<(usize, usize, Vec<u8>)>> {
    proptest::collection::vec((0..1000_usize, 0..6_usize, piece()), 0..6)
}

fn survives(rows: &[u8], metadata: Option<&[u8]>) {
    let files = Files::new();
    let path = files.put("99100001.csv", rows);
    if let Some(metadata) = metadata {
        files.put("99100001_MetaData.csv", metadata);
    }
    match read(&spec(&[&path])) {
        Ok((structure, rows)) => {
            // Whatever was accepted holds codes of its lists.
            for column in &structure.table.columns {
                let list = match column.name.as_str() {
                    "OBS_STATUS" => "CL_OBS_STATUS".to_owned(),
                    "SYMBOL" => "CL_SYMBOL".to_owned(),
                    "UNIT_MULT" => "CL_UNIT_MULT".to_owned(),
                    "UNIT_MEASURE" => "CL_99100001_UNIT_MEASURE".to_owned(),
                    name if column.role == ColumnRole::Dimension => format!("CL_99100001_{name}"),
                    _ => continue,
                };
                let (name, list) = (&column.name, codelist(&structure, &list));
                for code in super::column(&structure, &rows, name).into_iter().flatten() {
                    assert!(list.codes.iter().any(|known| known.id == code), "{name} {code}");
                }
            }
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_never_panic(rows in changes(), metadata in changes(), with_metadata: bool, which in 0..3) {
        let (text, meta) = match which {
            0 => (format!("{HEADER}{ROWS}"), META),
            1 => (format!("{FRENCH_HEADER}{FRENCH_ROWS}"), FRENCH_META),
            _ => (dialects::CENSUS.to_owned(), dialects::CENSUS_META),
        };
        let meta = mutated(meta, &metadata);
        survives(&mutated(&text, &rows), with_metadata.then_some(meta.as_slice()));
    }

    #[test]
    fn labels_are_read_back_as_they_were_written(labels in proptest::collection::vec("[a-zé\",;\r\n \\[\\]]{0,12}[a-z]", 1..20)) {
        let mut text = HEADER.to_owned();
        for (at, label) in labels.iter().enumerate() {
            let label = label.replace('"', "\"\"");
            let member = at + 1;
            text.push_str(&format!("\"2001\",\"Canada\",\"\",\"{label}\",\"\",\"\",\"\",\"\",\"\",\"1.{member}\",\"1\",\"\",\"\",\"\",\"\"\n"));
        }
        let (structure, rows) = read_text(&text, None).unwrap();
        prop_assert_eq!(rows.len(), labels.len());
        let list = codelist(&structure, "CL_99100001_DIM_2");
        let names: Vec<&str> = list.codes.iter().map(|code| code.name["en"].as_str()).collect();
        prop_assert_eq!(names, labels.iter().map(|label| label.trim()).collect::<Vec<_>>());
        prop_assert!(!kinds(&structure).contains(&FindingKind::LostQuotes));
    }

    #[test]
    fn any_bytes_never_panic(rows in proptest::collection::vec(any::<u8>(), 0..200), zip in changes()) {
        survives(&rows, None);
        let csv = format!("{HEADER}{ROWS}");
        let archive = zipped(&[("99100001.csv", csv.as_bytes()), ("99100001_MetaData.csv", META.as_bytes())]);
        let mut bytes = archive;
        for (at, remove, insert) in &zip {
            let at = at * bytes.len() / 1000;
            let end = (at + remove).min(bytes.len());
            bytes.splice(at..end, insert.iter().copied());
        }
        survives(&bytes, None);
    }
}
