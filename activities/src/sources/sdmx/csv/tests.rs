use engine_rules::failure::ActivityError as _;

use super::*;
use crate::shared::shared;

/// Components by id; those whose id begins with `C_` are coded.
fn components(ids: &[&str]) -> Components {
    Components::new(ids.iter().map(|id| ((*id).to_owned(), id.starts_with("C_"))))
}

/// The rows as text: line, structure, action and cells.
fn rows(text: &str, ids: &[&str]) -> Result<Vec<String>, CsvError> {
    let mut reader = CsvReader::open(text.as_bytes(), &components(ids))?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row()? {
        let cells: Vec<String> = row
            .cells
            .iter()
            .map(|cell| match cell {
                Cell::Omitted => "-".to_owned(),
                Cell::SwitchedOff => "~".to_owned(),
                Cell::Missing => "missing".to_owned(),
                Cell::Value(value) => format!("{value:?}"),
            })
            .collect();
        let id = row.structure.strip_prefix("urn:sdmx:org.sdmx.infomodel.datastructure.").unwrap();
        rows.push(format!("{} {id} {:?} {}", row.line, row.action, cells.join(" ")));
    }
    Ok(rows)
}

#[test]
fn version_1_is_read_with_ids_and_with_names() {
    let ids = ["C_GEO", "TIME_PERIOD", "OBS_VALUE"];
    let text = "DATAFLOW,C_GEO,TIME_PERIOD,OBS_VALUE,OURS\r\nSTC:DF(1.0),CA,2020,1.5,x\r\nSTC:DF(1.0),US,2020,,\r\n";
    assert_eq!(
        rows(text, &ids).unwrap(),
        [
            "2 Dataflow=STC:DF(1.0) Information \"CA\" \"2020\" \"1.5\"",
            "3 Dataflow=STC:DF(1.0) Information \"US\" \"2020\" -"
        ]
    );
    let text = "DATAFLOW;C_GEO: Geography;TIME_PERIOD: Time;OBS_VALUE: Value\nSTC:DF(1.0): Flow: a;CA: Canada: all;2020;NaN\n\nSTC:DF(1.0);US;2020: 2020;#N/A\n";
    assert_eq!(
        rows(text, &ids).unwrap(),
        [
            "2 Dataflow=STC:DF(1.0) Information \"CA\" \"2020\" missing",
            "4 Dataflow=STC:DF(1.0) Information \"US\" \"2020\" missing"
        ]
    );
}

#[test]
fn version_2_is_read_with_actions_keys_names_and_other_structures() {
    let ids = ["C_GEO", "OBS_VALUE", "NOTE"];
    let text = "STRUCTURE,STRUCTURE_ID,STRUCTURE_NAME,ACTION,SERIES_KEY,C_GEO,Geography,OBS_VALUE,Value,NOTE,Note\n\
        dataflow,STC:DF(1.0),Flow,M,CA,CA,Canada,1,,\"a, \"\"b\"\"\nc\",\n\
        datastructure,STC:DSD,,D,,~,,,,,\n\
        dataprovision,STC:PA(1.0),,,,,,1,,,\n";
    let mut reader = CsvReader::open(text.as_bytes(), &components(&ids)).unwrap();
    assert_eq!(reader.header().components().collect::<Vec<_>>(), ids);
    assert_eq!(reader.header().custom().count(), 0);
    let row = reader.next_row().unwrap().unwrap();
    assert_eq!(row.structure, "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:DF(1.0)");
    assert_eq!((row.line, row.action), (2, Action::Merge));
    assert_eq!(row.cells[2], Cell::Value("a, \"b\"\nc".into()));
    let row = reader.next_row().unwrap().unwrap();
    assert_eq!(row.structure, "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=STC:DSD");
    assert_eq!((row.line, row.action), (4, Action::Delete));
    assert_eq!(row.cells, [Cell::SwitchedOff, Cell::Omitted, Cell::Omitted]);
    let row = reader.next_row().unwrap().unwrap();
    assert_eq!(row.structure, "urn:sdmx:org.sdmx.infomodel.registry.ProvisionAgreement=STC:PA(1.0)");
    assert_eq!(row.action, Action::Information);
    assert!(reader.next_row().unwrap().is_none());
}

#[test]
fn several_values_are_taken_apart() {
    let text = "STRUCTURE[;],STRUCTURE_ID,A[],B[en;fr],CONTACT[].NAME[]\n\
        dataflow,STC:DF(1.0),X;Y,\"\"\"en:a;fr:b\"\";\"\"en:c\"\"\",\"\"\"n 1;n 2\"\";;\"\"n 3\"\"\"\n";
    let mut reader = CsvReader::open(text.as_bytes(), &components(&["A", "B", "CONTACT"])).unwrap();
    let shapes: Vec<_> = reader.header().columns[2..].iter().map(|column| column.kind.clone()).collect();
    let component = |id: &str, shape| ColumnKind::Component { id: id.to_owned(), shape, is_coded: false };
    assert_eq!(
        shapes,
        [
            component("A", Shape::Many),
            component("B", Shape::Languages(vec!["en".to_owned(), "fr".to_owned()])),
            component("CONTACT.NAME", Shape::Many),
        ]
    );
    let between = reader.header().between_values.unwrap();
    let row = reader.next_row().unwrap().unwrap();
    let apart: Vec<Vec<String>> = row
        .cells
        .iter()
        .map(|cell| match cell {
            Cell::Value(text) => values(text, between).into_iter().map(std::borrow::Cow::into_owned).collect(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(apart, [vec!["X", "Y"], vec!["en:a;fr:b", "en:c"], vec!["n 1;n 2", "", "n 3"]]);
}

#[test]
fn what_cannot_be_read_is_refused_with_line_and_reason() {
    for (text, code, expected) in [
        ("", "sdmx_csv.empty", "the file is empty"),
        ("a,b\n", "sdmx_csv.not_sdmx_csv", "begins with \"a,b\""),
        ("DATAFLOW", "sdmx_csv.not_sdmx_csv", "begins with DATAFLOW (1.0)"),
        ("<html>", "sdmx_csv.not_sdmx_csv", "begins with \"<html>\""),
        ("STRUCTURE,X\n", "sdmx_csv.no_column", "STRUCTURE_ID"),
        ("DATAFLOW,A,A\n", "sdmx_csv.column_twice", "\"A\" twice"),
        ("STRUCTURE,STRUCTURE_ID,A[]\n", "sdmx_csv.no_separator_within", "expected STRUCTURE[;]"),
        ("DATAFLOW,A\nSTC:DF(1.0),1,2\n", "sdmx_csv.width", "line 2: 3 fields, and the header has 2"),
        ("DATAFLOW,A\nSTC:DF(1.0),1\nDF,1\n", "sdmx_csv.id", "line 3: \"DF\" names no structure"),
        ("STRUCTURE,STRUCTURE_ID,A\ndata,STC:DF(1.0),1\n", "sdmx_csv.kind", "line 2: \"data\" is no kind"),
        ("STRUCTURE,STRUCTURE_ID,ACTION,A\ndataflow,STC:DF(1.0),E,1\n", "sdmx_csv.action", "\"E\" is no action"),
    ] {
        let error = rows(text, &["A"]).unwrap_err();
        assert_eq!(error.code(), code, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
    let mut reader = CsvReader::open(&b"DATAFLOW,A\nSTC:DF(1.0),\xFF\n"[..], &components(&["A"])).unwrap();
    assert_eq!(reader.next_row().unwrap_err().code(), "sdmx_csv.encoding");
    // A quote that is never closed stops at the limit.
    let endless = std::io::Read::chain(&b"DATAFLOW,A\nSTC:DF(1.0),\"x"[..], std::io::repeat(b'y'));
    let mut reader = CsvReader::open(endless, &components(&["A"])).unwrap();
    let error = reader.next_row().unwrap_err();
    assert_eq!(error.code(), "sdmx_csv.too_large", "{error}");
    assert!(error.to_string().starts_with("line 2: "), "{error}");
}

/// A file of the reference data with every column a component: how many rows, or why not.
fn outcome(bytes: &[u8]) -> String {
    let first = String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned();
    let ids = first.split(',').map(|name| name.split([':', '[']).next().unwrap_or_default().trim().to_owned());
    let components = Components::new(ids.map(|id| (id, true)));
    let mut reader = match CsvReader::open(bytes, &components) {
        Ok(reader) => reader,
        Err(error) => return format!("refused {}: {error}", error.code()),
    };
    let mut count = 0;
    loop {
        match reader.next_row() {
            Ok(Some(_)) => count += 1,
            Ok(None) => return format!("{:?}: {count} rows", reader.header().version),
            Err(error) => return format!("refused {} after {count} rows: {error}", error.code()),
        }
    }
}

#[test]
fn every_real_file_is_read_or_refused_with_a_reason() {
    let Some(folder) = shared("data/sdmx") else { return };
    let mut table = String::new();
    for path in super::super::tests::table::files(&folder) {
        if path.extension().is_some_and(|extension| extension == "csv") {
            let name = path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
            table.push_str(&format!("{name}\n  {}\n", outcome(&std::fs::read(&path).unwrap())));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_broken_file_is_read_or_refused_and_never_a_panic() {
    let whole =
        "STRUCTURE[;],STRUCTURE_ID,ACTION,A: a,B[]\ndataflow,STC:DF(1.0): x,M,\"1: \"\"2\"\"\",\"3;\"\"4;5\"\"\"\r\n";
    for end in 0..whole.len() {
        outcome(&whole.as_bytes()[..end]);
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.as_bytes().to_vec();
            changed[at] ^= 1 << bit;
            outcome(&changed);
        }
    }
}

proptest::proptest! {
    #[test]
    fn values_put_together_are_taken_apart(parts in proptest::collection::vec("[a-z;\", é]{0,6}", 1..5)) {
        let quoted: Vec<String> = parts.iter().map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect();
        let text = quoted.join(";");
        let apart: Vec<String> = values(&text, ';').into_iter().map(std::borrow::Cow::into_owned).collect();
        proptest::prop_assert_eq!(apart, parts);
    }
}
