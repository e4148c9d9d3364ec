use super::*;
use crate::sources::codr::metadata::{Cube, MetaDimension, MetaMember};

fn dialect(language: Language, names: &[&str]) -> Dialect {
    Dialect {
        language,
        layout: Layout::Ordinary,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        cells: 14 + names.len(),
    }
}

fn meta(language: Language, names: &[&str], members: &[(usize, u32, u32)]) -> Metadata {
    Metadata {
        file: format!("{language}.csv").into(),
        language,
        cube: Cube { dimensions: Some(names.len()), ..Cube::default() },
        dimensions: names
            .iter()
            .enumerate()
            .map(|(at, name)| MetaDimension {
                position: at + 1,
                name: (*name).to_owned(),
                notes: String::new(),
                definition: String::new(),
            })
            .collect(),
        members: members
            .iter()
            .enumerate()
            .map(|(at, (position, id, parent))| MetaMember {
                line: at as u64 + 10,
                position: *position,
                id: *id,
                name: format!("{language} {id}"),
                classification: String::new(),
                parent: (*parent > 0).then_some(*parent),
                terminated: false,
                notes: String::new(),
                definition: String::new(),
            })
            .collect(),
        attributes: Vec::new(),
        surveys: Vec::new(),
        subjects: Vec::new(),
        notes: Vec::new(),
        corrections: Vec::new(),
    }
}

fn build(names: &[&str], metadata: &[Metadata]) -> Result<(Vec<Dimension>, Vec<super::super::Finding>), CodrError> {
    let dialect = dialect(Language::English, names);
    let mut findings = Findings::default();
    dimensions(&[Described { file: "d.csv", dialect: &dialect }], metadata, &mut findings)
        .map(|dimensions| (dimensions, findings.into_list()))
}

#[test]
fn a_parent_may_come_later_and_have_a_greater_id() {
    let metadata = [meta(Language::English, &["Geography", "P"], &[(1, 1, 0), (2, 3, 20), (2, 20, 0), (2, 5, 3)])];
    let (dimensions, findings) = build(&["p "], &metadata).unwrap();
    assert_eq!(findings, []);
    assert_eq!(dimensions[1].members[&3].parent, Some(20));
    assert_eq!(dimensions[1].members.keys().copied().collect::<Vec<_>>(), [3, 5, 20]);
}

#[test]
fn a_missing_parent_is_told_and_a_cycle_is_refused() {
    let metadata = [meta(Language::English, &["Geography"], &[(1, 1, 9), (1, 2, 1)])];
    let (dimensions, findings) = build(&[], &metadata).unwrap();
    assert_eq!(dimensions[0].members[&1].parent, None);
    assert_eq!((findings.len(), findings[0].kind), (1, FindingKind::MissingParent));
    for cycle in [&[(1, 1, 1)][..], &[(1, 1, 2), (1, 2, 1)], &[(1, 4, 3), (1, 1, 2), (1, 2, 3), (1, 3, 1)]] {
        let metadata = [meta(Language::English, &["Geography"], cycle)];
        assert!(matches!(build(&[], &metadata), Err(CodrError::ParentCycle { position: 1, .. })), "{cycle:?}");
    }
    let metadata = [meta(Language::English, &["Geography"], &[(1, 1, 0), (1, 1, 0)])];
    assert!(matches!(build(&[], &metadata), Err(CodrError::DuplicateMember { line: 11, first_line: 10, .. })));
}

#[test]
fn metadata_of_another_shape_is_refused() {
    let members = [(1, 1, 0), (2, 1, 0)];
    let metadata = [meta(Language::English, &["Geography", "Other"], &members)];
    assert!(matches!(build(&["P"], &metadata), Err(CodrError::DimensionName { position: 2, .. })));
    assert!(matches!(build(&["P", "Q"], &metadata), Err(CodrError::DimensionCount { found: 2, expected: 3, .. })));
    // In the other language the names cannot be compared.
    let metadata = [meta(Language::French, &["Géographie", "Autre"], &members)];
    let (dimensions, _) = build(&["P"], &metadata).unwrap();
    assert_eq!(dimensions[1].names["fr"], "Autre");
    assert_eq!(dimensions[1].names["en"], "P");
    let metadata = [meta(Language::English, &["Geography", "P"], &[(1, 1, 0)])];
    assert!(matches!(build(&["P"], &metadata), Err(CodrError::MetadataBlock { .. })));
}

#[test]
fn both_languages_must_hold_the_same_tree() {
    let english = meta(Language::English, &["Geography"], &[(1, 1, 0), (1, 2, 1)]);
    let french = meta(Language::French, &["Géographie"], &[(1, 2, 1), (1, 1, 0)]);
    let (dimensions, _) = build(&[], &[english.clone(), french]).unwrap();
    assert_eq!(dimensions[0].members[&2].names["fr"], "French 2");
    assert_eq!(dimensions[0].members[&2].names["en"], "English 2");
    for (members, at) in [(&[(1, 1, 0)][..], 2), (&[(1, 1, 0), (1, 2, 0)], 2), (&[(1, 1, 0), (1, 2, 1), (1, 3, 0)], 3)]
    {
        let french = meta(Language::French, &["Géographie"], members);
        match build(&[], &[english.clone(), french]) {
            Err(CodrError::LanguagesDisagree { member, .. }) => assert_eq!(member, at),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn slots_grow_only_where_no_list_was_given() {
    let (listed, _) = build(&[], &[meta(Language::English, &["Geography"], &[(1, 5, 0), (1, 2_000_000, 0)])]).unwrap();
    let mut slots = Slots::of(&listed[0]);
    assert_eq!(slots.find(5), Some(0));
    assert_eq!(slots.find(2_000_000), Some(1));
    assert_eq!(slots.find(6), None);
    let (flat, findings) = build(&[], &[]).unwrap();
    assert_eq!(findings[0].kind, FindingKind::NoMetadata);
    let mut slots = Slots::of(&flat[0]);
    assert_eq!((slots.find(7), slots.find(u32::MAX), slots.find(7)), (Some(0), Some(1), Some(0)));
}

#[test]
fn a_label_may_carry_the_classification_code() {
    assert_eq!(without_code("Logging [1133]", "1133"), "Logging");
    assert_eq!(without_code("Logging [1133] ", ""), "Logging [1133]");
    assert_eq!(without_code("Logging [1134]", "1133"), "Logging [1134]");
}
