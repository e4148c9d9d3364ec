//! On the real files beside the project.

use std::collections::BTreeMap;

use super::*;
use crate::shared::shared;

fn codr(inner: &str) -> Option<PathBuf> {
    shared(&format!("data/codr/{inner}"))
}

#[test]
fn a_daily_table_has_the_rows_of_its_description() {
    let (Some(zip), Some(described)) = (codr("33100036/33100036-eng.zip"), codr("33100036/33100036.json")) else {
        return;
    };
    let described: serde_json::Value = serde_json::from_slice(&std::fs::read(described).unwrap()).unwrap();
    let expected = described["nbDatapointsCube"].as_u64().unwrap();
    let mut spec = spec_of("33100036", &[&zip]);
    spec.expected_rows = Some(expected);
    let (structure, rows) = read(&spec).unwrap();
    assert_eq!((structure.observations, rows.len()), (90_086, 90_086));
    assert_eq!(structure.findings, []);
    let values = column(&structure, &rows, "OBS_VALUE");
    assert_eq!(values.iter().filter(|value| value.is_none()).count(), 12_495);
    assert_eq!(values[5].as_deref(), Some("0.00000000"));
    assert_eq!(structure.max_scale, 8);
    // The members are those of the description, in both identity and order.
    let described: Vec<String> = described["dimension"][1]["member"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["memberId"].to_string())
        .collect();
    let codes: Vec<&str> =
        codelist(&structure, "CL_33100036_DIM_2").codes.iter().map(|code| code.id.as_str()).collect();
    assert_eq!(codes, described);
}

#[test]
fn members_1_and_10_are_two() {
    let Some(zip) = codr("10100001-eng.zip") else { return };
    let (structure, rows) = read(&spec_of("10100001", &[&zip])).unwrap();
    let members = column(&structure, &rows, "DIM_2");
    let count = |id: &str| members.iter().filter(|member| member.as_deref() == Some(id)).count();
    assert_eq!((count("1"), count("10"), rows.len()), (13, 13, 182));
    assert_eq!(structure.findings, []);
    let list = codelist(&structure, "CL_10100001_DIM_2");
    assert_eq!(list.codes.len(), 14);
    assert_eq!(list.codes[9].parent_id.as_deref(), Some("9"));
}

#[test]
fn blanks_keep_their_status() {
    let Some(csv) = codr("23100309/23100309.csv") else { return };
    let (structure, rows) = read(&spec_of("23100309", &[&csv])).unwrap();
    let mut counts: BTreeMap<(Option<String>, bool), usize> = BTreeMap::new();
    let statuses = column(&structure, &rows, "OBS_STATUS");
    for (status, value) in statuses.into_iter().zip(column(&structure, &rows, "OBS_VALUE")) {
        *counts.entry((status, value.is_some())).or_default() += 1;
    }
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [((None, true), 4_514), ((Some("NOT_AVAILABLE".to_owned()), false), 16), ((Some("x".to_owned()), false), 110),]
    );
    assert_eq!(kinds(&structure), [FindingKind::NoMetadata]);
    assert_eq!(codelist(&structure, "CL_23100309_GEO").codes.len(), 928);
}

#[test]
fn three_releases_of_one_table_read_with_the_metadata_of_the_last() {
    let expected = [("v1_to_2023-01_crlf.csv", 3_881), ("v2_to_2024-07.csv", 3_965), ("v3_to_2025-10.csv", 4_035)];
    let mut artefacts = Vec::new();
    for (name, count) in expected {
        let Some(csv) = codr(&format!("17100009/{name}")) else { return };
        let (structure, rows) = read(&spec_of("17100009", &[&csv])).unwrap();
        assert_eq!(rows.len(), count);
        assert_eq!(structure.findings, []);
        artefacts.push(structure.artefacts);
    }
    assert_eq!(artefacts[0], artefacts[2]);
    let Some(zip) = codr("17100009/17100009-eng_v3.zip") else { return };
    let (structure, rows) = read(&spec_of("17100009", &[&zip])).unwrap();
    assert_eq!((rows.len(), &structure.artefacts), (4_035, &artefacts[2]));
    let list = codelist(&structure, "CL_17100009_GEO");
    assert_eq!(list.codes.len(), 15);
    assert_eq!(list.codes[12].annotations[0].r#type.as_deref(), Some("TERMINATED"));
}

#[test]
fn an_extract_reads_with_the_metadata_beside_it() {
    let Some(folder) = codr("14100287") else { return };
    let (structure, rows) = read(&spec_of("14100287", &[&folder])).unwrap();
    assert_eq!(rows.len(), 480);
    assert_eq!(structure.findings, []);
    let ages = codelist(&structure, "CL_14100287_DIM_4");
    assert_eq!(ages.codes.len(), 9);
    assert_eq!(codelist(&structure, "CL_14100287_DIM_2").codes[5].parent_id.as_deref(), Some("2"));
    assert_eq!(column(&structure, &rows, "OBS_VALUE")[0].as_deref(), Some("426.5"));
}

#[test]
fn the_french_file_has_the_rows_of_the_english_one() {
    let (Some(english), Some(french)) = (codr("french/18100265-eng.zip"), codr("french/18100265-fra-CONSTRUCTED.zip"))
    else {
        return;
    };
    let (one, english_rows) = read(&spec_of("18100265", &[&english])).unwrap();
    let (two, french_rows) = read(&spec_of("18100265", &[&french])).unwrap();
    assert_eq!(english_rows.len(), 10_282);
    assert!(english_rows == french_rows, "the rows differ");
    assert_eq!(one.table, two.table);
    assert_eq!(one.findings, []);
    assert_eq!(kinds(&two), [FindingKind::MetadataWithoutMembers]);
    let (both, rows) = read(&spec_of("18100265", &[&french, &english])).unwrap();
    assert!(rows == english_rows, "the rows of both languages differ");
    let unit = &codelist(&both, "CL_18100265_UNIT_MEASURE").codes[0];
    assert_eq!(unit.name, frozen::both("Index, 202001=100", "Indice, 202001=100"));
}

#[test]
fn files_given_by_mistake_are_refused() {
    let table = [
        ("refuse/1410028701-eng.csv", "14100287", "codr.display_pivot"),
        ("refuse/13100262.csv", "13100262", "codr.wrong_column"),
        ("17100009/17100009_MetaData.csv", "17100009", "codr.other_kind"),
        ("17100009/derived_delta_v1_to_v2.csv", "17100009", "codr.other_kind"),
        ("17100009/17100009-eng_v3.zip", "14100287", "codr.other_product"),
        ("23100309/23100309.csv", "14100287", "codr.other_product"),
        ("delta/20230803.zip", "14100287", "codr.archive_members"),
    ];
    for (path, product, code) in table {
        let Some(path) = codr(path) else { return };
        let fault = read(&spec_of(product, &[&path])).unwrap_err();
        assert_eq!(engine_rules::failure::ActivityError::code(&fault), code, "{fault}");
    }
    let (Some(data), Some(metadata)) = (codr("14100287/14100287.csv"), codr("metadata/17100005_MetaData.csv")) else {
        return;
    };
    let mut spec = spec_of("14100287", &[&data]);
    spec.metadata.push(metadata);
    assert!(matches!(read(&spec), Err(CodrError::OtherProduct { line: 2, .. })));
}

#[test]
fn an_older_release_does_not_know_newer_members() {
    let (Some(rows), Some(metadata)) = (codr("17100009/v3_to_2025-10.csv"), codr("17100009/17100009_MetaData.csv"))
    else {
        return;
    };
    let files = Files::new();
    let data = files.put("17100009.csv", std::fs::read(rows).unwrap());
    let text = String::from_utf8(std::fs::read(metadata).unwrap()).unwrap();
    let older: String = text.split_inclusive('\n').filter(|line| !line.contains("\"Nunavut\"")).collect();
    files.put("17100009_MetaData.csv", older);
    let CodrError::UnknownMember { member, dimension, lowest, highest, .. } =
        read(&spec_of("17100009", &[&data])).unwrap_err()
    else {
        panic!()
    };
    assert_eq!((member, dimension.as_str(), lowest, highest), (15, "Geography", 1, 14));
}
