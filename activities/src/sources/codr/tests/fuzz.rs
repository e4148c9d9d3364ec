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
            for (name, list) in [("GEO", "CL_99100001_GEO"), ("OBS_STATUS", "CL_OBS_STATUS")] {
                let list = codelist(&structure, list);
                for code in column(&structure, &rows, name).into_iter().flatten() {
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
    fn changed_files_never_panic(rows in changes(), metadata in changes(), with_metadata: bool, french: bool) {
        let text = if french { format!("{FRENCH_HEADER}{FRENCH_ROWS}") } else { format!("{HEADER}{ROWS}") };
        let meta = mutated(if french { FRENCH_META } else { META }, &metadata);
        survives(&mutated(&text, &rows), with_metadata.then_some(meta.as_slice()));
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
