use super::*;

fn some(cells: &[&str]) -> Row {
    cells.iter().map(|cell| (*cell != "-").then(|| (*cell).to_owned())).collect()
}

fn expected_rows() -> Vec<Row> {
    // GEO, DIM_2, TIME_PERIOD, OBS_VALUE, OBS_STATUS, SYMBOL, DGUID, UNIT_MEASURE, UNIT_MULT, DECIMALS, VECTOR,
    // TERMINATED
    vec![
        some(&["1", "1", "2001-01", "12.50", "-", "-", "2021A000011124", "249", "0", "2", "v1", "false"]),
        some(&["1", "10", "2001-01", "-", "NOT_AVAILABLE", "-", "2021A000011124", "249", "0", "2", "v10", "true"]),
        some(&["1", "1", "2001-02", "-0.75", "E", "r", "-", "81", "3", "2", "-", "false"]),
    ]
}

#[test]
fn every_way_to_give_a_table_gives_the_same_rows() {
    let files = Files::new();
    let csv = format!("\u{feff}{HEADER}{ROWS}");
    let names = [format!("{PID}.csv"), format!("{PID}_MetaData.csv")];
    let archive = files.zip("any-name.zip", &[(&names[0], csv.as_bytes()), (&names[1], META.as_bytes())]);
    let other_case =
        files.zip("b.zip", &[("99100001.CSV", csv.as_bytes()), ("99100001_Metadata.csv", META.as_bytes())]);
    let bare = files.put("folder/99100001.csv", &csv);
    files.put("folder/99100001_metadata.CSV", META);
    let folder = files.path().join("folder");
    let renamed = files.put("renamed/v1_of_2001.csv", csv.replace('\n', "\r\n"));
    files.put("renamed/99100001_MetaData.csv", META);
    let alone = files.put("alone/99100001.csv", &csv[3..]);
    let given = files.put("elsewhere/meta.csv", META);
    let mut with_metadata = spec(&[&alone]);
    with_metadata.metadata.push(given);
    let blank_lines = files.put("blank/99100001.csv", format!("{csv}\n\n"));
    files.put("blank/99100001_MetaData.csv", META);

    let members = [(names[0].as_str(), csv.as_bytes()), (names[1].as_str(), META.as_bytes())];
    let large = zip::write::SimpleFileOptions::default().large_file(true);
    let zip64 = files.put("large.zip", zipped_with(&members, large));

    let mut structures = Vec::new();
    for spec in [
        spec(&[&archive]),
        spec(&[&other_case]),
        spec(&[&zip64]),
        spec(&[&bare]),
        spec(&[&folder]),
        spec(&[&renamed]),
        with_metadata,
        spec(&[&blank_lines]),
    ] {
        let (structure, rows) = read(&spec).unwrap();
        assert_eq!(rows.iter().map(|row| row.last().unwrap().clone().unwrap()).collect::<Vec<_>>(), ["2", "3", "4"]);
        assert_eq!(without_lines(rows), expected_rows(), "{spec:?}");
        assert_eq!(kinds(&structure), [], "{:?}", structure.findings);
        structures.push(structure);
    }
    for structure in &structures {
        assert_eq!(structure.artefacts, structures[0].artefacts);
        assert_eq!(structure.table, structures[0].table);
    }
    assert_eq!(structures[0].table.columns[3].sql_type.to_string(), "DECIMAL(18,2)");
    assert_eq!((structures[0].max_scale, structures[0].max_integer_digits), (2, 2));
}

#[test]
fn french_and_both_languages_give_the_rows_of_the_english_file() {
    let files = Files::new();
    let english = files.put("en/99100001.csv", format!("\u{feff}{HEADER}{ROWS}"));
    files.put("en/99100001_MetaData.csv", META);
    let french = files.put("fr/99100001.csv", format!("\u{feff}{FRENCH_HEADER}{FRENCH_ROWS}"));
    files.put("fr/99100001_MetaData.csv", FRENCH_META);

    let (one, rows) = read(&spec(&[&french])).unwrap();
    assert_eq!(without_lines(rows), expected_rows());
    assert_eq!(one.rows_from.1, Language::French);
    assert_eq!(codelist(&one, "CL_99100001_DIM_2").common.name["fr"], "Produits");
    for order in [[&*french, &*english], [&*english, &*french]] {
        let (both, rows) = read(&spec(&order)).unwrap();
        assert_eq!(without_lines(rows), expected_rows());
        assert_eq!(both.rows_from, (english.display().to_string(), Language::English));
        assert_eq!(both.table, one.table);
        let list = codelist(&both, "CL_99100001_DIM_2");
        assert_eq!(list.codes[1].name, frozen::both("Meat \"fresh\"", "Viande « fraîche »"));
        assert_eq!(list.codes[1].parent_id.as_deref(), Some("1"));
        let units = codelist(&both, "CL_99100001_UNIT_MEASURE");
        assert_eq!(units.codes[1].name, frozen::both("Persons", "Personnes"));
        assert_eq!(kinds(&both), []);
    }
    // The French labels come from the rows where no French metadata is at hand.
    std::fs::remove_file(files.path().join("fr/99100001_MetaData.csv")).unwrap();
    let (both, _) = read(&spec(&[&english, &french])).unwrap();
    let list = codelist(&both, "CL_99100001_DIM_2");
    assert_eq!(list.codes[1].name, frozen::both("Meat \"fresh\"", "Viande « fraîche »"));
}

#[test]
fn without_metadata_members_are_taken_from_the_rows() {
    let (structure, rows) = read_text(&format!("{HEADER}{ROWS}"), None).unwrap();
    assert_eq!(without_lines(rows), expected_rows());
    assert_eq!(kinds(&structure), [FindingKind::NoMetadata]);
    let list = codelist(&structure, "CL_99100001_DIM_2");
    assert_eq!(list.codes.iter().map(|code| code.id.as_str()).collect::<Vec<_>>(), ["1", "10"]);
    assert_eq!(list.codes[1].name["en"], "Meat \"fresh\" [P11]");
    assert!(list.codes.iter().all(|code| code.parent_id.is_none()));
    // Metadata with a cube block alone, as some French files have it.
    let cube: String = META.lines().take(2).map(|line| format!("{line}\n")).collect();
    let (structure, _) = read_text(&format!("{HEADER}{ROWS}"), Some(&cube)).unwrap();
    assert_eq!(kinds(&structure), [FindingKind::MetadataWithoutMembers]);
}

#[test]
fn lost_quotes_and_line_breaks_in_labels_are_read() {
    let lost = ROWS.replace("\"\"fresh\"\"", "\"fresh\"");
    let (structure, rows) = read_text(&format!("{HEADER}{lost}"), Some(META)).unwrap();
    assert_eq!(without_lines(rows), expected_rows());
    assert_eq!(kinds(&structure), [FindingKind::LostQuotes]);
    assert_eq!(structure.findings[0].line, Some(3));

    let broken = ROWS.replacen("\"All items\"", "\"All items\n\"", 1);
    let (structure, rows) = read_text(&format!("{HEADER}{broken}"), Some(META)).unwrap();
    let lines: Vec<_> = rows.iter().map(|row| row.last().unwrap().clone().unwrap()).collect();
    assert_eq!(lines, ["2", "4", "5"]);
    assert_eq!(without_lines(rows), expected_rows());
    assert_eq!(kinds(&structure), []);
}

#[test]
fn what_is_odd_but_readable_is_told() {
    let rows = "\
\"2001/2002\",\"Canada\",\"\",\"All items\",\"Persons\",\"249\",\"units\",\"0\",\"v1\",\"1.1\",\"1.5\",\"x\",\"\",\"\",\"0\"
\"2001\",\"Kanada\",\"\",\"Everything\",\"People\",\"249\",\"tens\",\"0\",\"v1\",\"1.1\",\"\",\"\",\"\",\"\",\"0\"
\"2002\",\"Canada\",\"\",\"Everything\",\"People\",\"249\",\"tens\",\"0\",\"v1\",\"1.1\",\"0\",\"..., p\",\"\",\"\",\"0\"
";
    let (structure, rows) = read_text(&format!("{HEADER}{rows}"), Some(META)).unwrap();
    let mut found: Vec<_> = structure.findings.iter().map(|f| (f.kind, f.line, f.count)).collect();
    found.sort();
    assert_eq!(
        found,
        [
            (FindingKind::LabelDiffers, Some(3), 1),
            (FindingKind::LabelDiffers, Some(3), 1),
            (FindingKind::UnitTextDiffers, Some(3), 1),
            (FindingKind::ScalarTextDiffers, Some(3), 1),
            (FindingKind::DecimalsDiffer, Some(2), 1),
            (FindingKind::BlankWithoutStatus, Some(3), 1),
            (FindingKind::ValueBesideStatus, Some(2), 1),
            (FindingKind::PeriodSpan, Some(2), 1),
        ]
    );
    assert_eq!(column(&structure, &rows, "TIME_PERIOD")[0].as_deref(), Some("2001-01-01/P2Y"));
    assert_eq!(column(&structure, &rows, "OBS_VALUE"), [Some("1.5".to_owned()), None, Some("0".to_owned())]);
    assert_eq!(column(&structure, &rows, "OBS_STATUS")[2].as_deref(), Some("NOT_APPLICABLE"));
    assert_eq!(column(&structure, &rows, "SYMBOL")[2].as_deref(), Some("p"));
}

pub(super) const CENSUS: &str = "\u{feff}\"REF_DATE\",\"GEO\",\"DGUID\",\"Age (3)\",\"Coordinate\",\"Statistics (2):Total (1)[1]\",\"Symbols\",\"Statistics (2): Rate [12] \",\"Symbols\"
\"2021\",\"Canada\",\"2021A000011124\",\"Total - Age\",\"1.1\",\"100\",\"\",\"12.5\",\"r,E\"
\"2021\",\"Canada\",\"2021A000011124\",\"0 to 14\",\"1.2\",\"\",\"x\",\"0\",\"...\"


";
pub(super) const CENSUS_META: &str = "\"Cube Title\",\"Product Id\",\"CANSIM Id\",URL,\"Cube Notes\",\"Archive Status\",Frequency,\"Start Reference Period\",\"End Reference Period\",\"Total number of dimensions\",Universe,\"Variable List\"
\"A census\",\"99100001\",,\"https://example.org/\",,\"CURRENT - x\",\"Every 5 years\",2021-01-01,2021-01-01,3,,

\"Dimension ID\",\"Dimension name\",\"Dimension Notes\",\"Dimension Correction Notes\",\"Dimension Definitions\"
1,Geography,,,
2,\"Age (3)\",,,
3,\"Statistics (2)\",,,

\"Dimension ID\",\"Member Name\",\"Classification Code\",\"Member ID\",\"Parent Member ID\",Terminated,\"Member Notes\",\"Member Correction Notes\",\"Member Geo Attribute Keys\",\"Member Definitions\"
1,Canada,[11124],1,,,,,k1,
2,\"Total - Age\",,1,,,,,,
2,\"0 to 14\",,2,1,,,,,
3,Total,,1,,,,,,
3,Rate,,12,,,,,,

\"Correction ID\",\"Correction Date\",\"Correction Note\"
\"Dimension ID\",\"Member ID\",\"Attribute Key\",Title,Label,\"Long Label\",Value
1,1,k1,Kind,Country,,C
";

#[test]
fn a_census_table_is_turned_into_one_observation_a_member() {
    for metadata in [Some(CENSUS_META), None] {
        let (structure, rows) = read_text(CENSUS, metadata).unwrap();
        assert_eq!(
            rows,
            [
                some(&["1", "1", "1", "2021", "100", "-", "-", "2021A000011124", "2"]),
                some(&["1", "1", "12", "2021", "12.5", "E", "r", "2021A000011124", "2"]),
                some(&["1", "2", "1", "2021", "-", "x", "-", "2021A000011124", "3"]),
                some(&["1", "2", "12", "2021", "0", "NOT_APPLICABLE", "-", "2021A000011124", "3"]),
            ]
        );
        let list = codelist(&structure, "CL_99100001_DIM_3");
        assert_eq!(list.common.name["en"], "Statistics (2)");
        assert_eq!(list.codes[1].name["en"], "Rate");
        assert!(structure.table.columns.iter().all(|column| column.name != "VECTOR"));
    }
    let (structure, _) = read_text(CENSUS, Some(CENSUS_META)).unwrap();
    let canada = &codelist(&structure, "CL_99100001_GEO").codes[0];
    let attribute = canada.annotations.iter().find(|a| a.r#type.as_deref() == Some("MEMBER_ATTRIBUTE")).unwrap();
    assert_eq!((attribute.id.as_deref(), attribute.value.as_deref()), (Some("k1"), Some("C")));
}

#[test]
fn batches_are_bounded_and_a_receiver_can_stop() {
    let files = Files::new();
    let mut text = HEADER.to_owned();
    let mut expected = 0;
    for year in 1000..9000 {
        for month in 1..=9 {
            text.push_str(&format!(
                "\"{year}-0{month}\",\"Canada\",\"\",\"All items\",\"P\",\"249\",\"units\",\"0\",\"v1\",\"1.1\",\"{year}\",\"\",\"\",\"\",\"0\"\n"
            ));
            expected += 1;
        }
    }
    let path = files.put("99100001.csv", text);
    let spec = spec(&[&path]);
    let identity = identify(&spec).unwrap();
    let mut sizes = Vec::new();
    let structure = open(&spec, &identity)
        .unwrap()
        .for_each_batch(&mut |batch| {
            sizes.push(batch.num_rows());
            Ok::<(), Infallible>(())
        })
        .unwrap();
    assert_eq!(structure.observations, expected);
    assert_eq!(sizes, [scan::BATCH_ROWS, scan::BATCH_ROWS, 72_000 - 2 * scan::BATCH_ROWS]);
    let stopped = open(&spec, &identity).unwrap().for_each_batch(&mut |_| Err("enough"));
    assert!(matches!(stopped, Err(ReadError::Receiver("enough"))));
}

#[test]
fn batches_can_be_appended_to_a_table_of_the_engine() {
    let files = Files::new();
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    let spec = spec(&[&path]);
    let source = open(&spec, &identify(&spec).unwrap()).unwrap();
    let connection = duckdb::Connection::open_in_memory().unwrap();
    let columns: Vec<String> =
        source.table().columns.iter().map(|column| format!("\"{}\" {}", column.name, column.sql_type)).collect();
    connection.execute_batch(&format!("CREATE TABLE t ({}, _line BIGINT)", columns.join(", "))).unwrap();
    let mut appender = connection.appender("t").unwrap();
    source.for_each_batch(&mut |batch| appender.append_record_batch(batch)).unwrap();
    drop(appender);
    let (rows, blanks, sum): (i64, i64, String) = connection
        .query_row(
            "SELECT count(*), count(*) FILTER (OBS_VALUE IS NULL AND TERMINATED), sum(OBS_VALUE::DECIMAL(18,2))::VARCHAR FROM t",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!((rows, blanks, sum.as_str()), (3, 1, "11.75"));
}

#[test]
fn the_line_of_each_row_lets_a_writer_name_a_duplicate() {
    let files = Files::new();
    let again = ROWS.lines().next().unwrap();
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}\n{again}\n"));
    let spec = spec(&[&path]);
    let source = open(&spec, &identify(&spec).unwrap()).unwrap();
    let layout = source.table().clone();
    let connection = duckdb::Connection::open_in_memory().unwrap();
    let columns: Vec<String> = layout.columns.iter().map(|c| format!("\"{}\" {}", c.name, c.sql_type)).collect();
    connection.execute_batch(&format!("CREATE TABLE t ({}, {LINE_COLUMN} BIGINT)", columns.join(", "))).unwrap();
    let mut appender = connection.appender("t").unwrap();
    source.for_each_batch(&mut |batch| appender.append_record_batch(batch)).unwrap();
    drop(appender);
    let query = format!(
        "SELECT min({LINE_COLUMN}), max({LINE_COLUMN}) FROM t GROUP BY {} HAVING count(*) > 1",
        layout.key.join(", ")
    );
    let lines: (i64, i64) = connection.query_row(&query, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(lines, (2, 6));
}

#[test]
fn a_terminated_mark_counts_wherever_it_stands() {
    let rows = ROWS.replace("\"12.50\",\"\"", "\"12.50\",\"t\"");
    let (structure, rows) = read_text(&format!("{HEADER}{rows}"), Some(META)).unwrap();
    let terminated = column(&structure, &rows, "TERMINATED");
    assert_eq!(terminated.iter().flatten().collect::<Vec<_>>(), ["true", "true", "false"]);
    assert_eq!(column(&structure, &rows, "OBS_STATUS")[0], None);
}
