//! The case tables of *edition* §5.2, §5.3 and §5.6.

use super::*;

/// The annotations of type NOTE on every target, by its URN: the values, and `-` for one without.
fn notes(artefacts: &[Artefact]) -> BTreeMap<String, String> {
    let mut notes = BTreeMap::new();
    for artefact in artefacts {
        let urn = artefact.urn();
        super::super::target::each_target(&mut artefact.clone(), |target| {
            let place = match target.named.item {
                None => format!("{}={}", target.named.classes[0], urn.split_once('=').unwrap().1),
                Some(item) => format!("{} {item} of {}", target.named.classes[0], urn.split_once('=').unwrap().1),
            };
            let values: Vec<&str> = target
                .annotations
                .iter()
                .filter(|annotation| annotation.r#type.as_deref() == Some("NOTE"))
                .map(|annotation| annotation.value.as_deref().unwrap_or("-"))
                .collect();
            notes.insert(place, values.join(","));
            Ok::<(), ()>(())
        })
        .unwrap();
    }
    notes
}

/// The targets whose notes are not what they were.
fn noted(applied: &Applied) -> Vec<String> {
    let before = notes(&artefacts());
    notes(&applied.artefacts)
        .into_iter()
        .filter(|(place, values)| before[place] != *values)
        .map(|(place, _)| place)
        .collect()
}

fn add(selector: &str, value: &str) -> String {
    format!(r#"{{"selector":"{selector}","op":"add","type":"NOTE","annotation":{{"value":"{value}"}}}}"#)
}

fn set(selector: &str, value: &str) -> String {
    format!(r#"{{"selector":"{selector}","op":"set","type":"NOTE","annotation":{{"value":"{value}"}}}}"#)
}

fn name(selector: &str, op: &str, field: &str, lang: &str, text: &str) -> String {
    let text = if op == "set" { format!("\"{text}\"") } else { "null".to_owned() };
    format!(r#"{{"selector":"{selector}","op":"{op}","field":"{field}","lang":"{lang}","text":{text}}}"#)
}

#[test]
fn a_selector_reaches_what_the_specification_says_and_nothing_else() {
    let every = notes(&artefacts()).len();
    for (selector, expected) in [
        ("Codelist", vec!["Codelist=STC:CL_GEO(1.0)", "Codelist=STC:CL_GEO(2.0)"]),
        ("Dimension", vec!["Dimension GEO of STC:DSD(1.0)"]),
        ("TimeDimension", vec!["TimeDimension TIME_PERIOD of STC:DSD(1.0)"]),
        ("Attribute", vec!["Attribute STATUS of STC:DSD(1.0)"]),
        ("DataAttribute", vec!["Attribute STATUS of STC:DSD(1.0)"]),
        ("GroupDimensionDescriptor", vec!["Group SIBLING of STC:DSD(1.0)"]),
        ("Concept", vec!["Concept GEO of STC:CL_GEO(1.0)"]),
        // Every version and every class, and no item.
        ("STC:CL_GEO", vec!["Codelist=STC:CL_GEO(1.0)", "Codelist=STC:CL_GEO(2.0)", "ConceptScheme=STC:CL_GEO(1.0)"]),
        ("STC:GEO", vec![]),
        ("OTHER:CL_GEO", vec![]),
        (LIST, vec!["Codelist=STC:CL_GEO(1.0)"]),
        (SCHEME, vec!["ConceptScheme=STC:CL_GEO(1.0)"]),
        (CODE, vec!["Code 35 of STC:CL_GEO(1.0)"]),
        (
            "urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=STC:CL_GEO(1.0).GEO",
            vec!["Concept GEO of STC:CL_GEO(1.0)"],
        ),
        (
            "urn:sdmx:org.sdmx.infomodel.datastructure.Attribute=STC:DSD(1.0).STATUS",
            vec!["Attribute STATUS of STC:DSD(1.0)"],
        ),
        (
            "urn:sdmx:org.sdmx.infomodel.datastructure.DataAttribute=STC:DSD(1.0).STATUS",
            vec!["Attribute STATUS of STC:DSD(1.0)"],
        ),
        // Another class, package, version, item, or no version.
        ("urn:sdmx:org.sdmx.infomodel.datastructure.Dimension=STC:DSD(1.0).STATUS", vec![]),
        ("urn:sdmx:org.sdmx.infomodel.base.Code=STC:CL_GEO(1.0).35", vec![]),
        ("urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO(3.0).35", vec![]),
        ("urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO(1.0).36", vec![]),
        ("urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO.35", vec![]),
        ("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO", vec![]),
        ("Unheard", vec![]),
    ] {
        let applied = folded(&[overlay(&[&add(selector, "new")], &[])], None).unwrap();
        assert_eq!(noted(&applied), expected, "{selector}");
        let count = u64::try_from(expected.len()).unwrap();
        assert_eq!((applied.entries[0].selected, applied.entries[0].changed), (count, count), "{selector}");
    }
    let applied = folded(&[overlay(&[&add("*", "new")], &[])], None).unwrap();
    assert_eq!((noted(&applied).len(), applied.changed.len()), (every, 5));
}

#[test]
fn set_add_and_remove_leave_every_other_annotation_as_it_was() {
    let on = |applied: &Applied| match &applied.artefacts[0] {
        Artefact::Codelist(list) => list.codes[1].annotations.clone(),
        other => panic!("{other:?}"),
    };
    let remove = format!(r#"{{"selector":"{CODE}","op":"remove","type":"NOTE"}}"#);
    for (entry, expected) in [
        (remove, vec![note("ORDER", "1")]),
        (add(CODE, "new"), vec![note("NOTE", "old"), note("ORDER", "1"), note("NOTE", "older"), note("NOTE", "new")]),
        (set(CODE, "new"), vec![note("ORDER", "1"), note("NOTE", "new")]),
    ] {
        let applied = folded(&[overlay(&[&entry], &[])], None).unwrap();
        assert_eq!(on(&applied), expected, "{entry}");
        assert_eq!(applied.changed, [LIST.to_owned()].into(), "{entry}");
        assert_eq!(applied.artefacts[1..], artefacts()[1..], "{entry}");
    }
}

#[test]
fn an_annotation_is_written_with_all_its_fields_and_the_type_of_its_entry() {
    let entry = format!(
        r#"{{"selector":"{LIST}","op":"set","type":"NOTE",
            "annotation":{{"id":"i","title":"t","value":"v","text":{{"en":"e","fr":"f"}}}}}}"#
    );
    let applied = folded(&[overlay(&[&entry], &[])], None).unwrap();
    let expected = Annotation {
        id: Some("i".to_owned()),
        title: Some("t".to_owned()),
        r#type: Some("NOTE".to_owned()),
        urls: Vec::new(),
        text: languages(&[("en", "e"), ("fr", "f")]),
        value: Some("v".to_owned()),
    };
    assert_eq!(applied.artefacts[0].common().annotations, [expected]);
}

#[test]
fn the_most_specific_applies_last_whatever_the_order_of_documents() {
    let (all, class) = (overlay(&[&set("*", "all")], &[]), overlay(&[&set("Codelist", "class")], &[]));
    let (whole, urn) = (overlay(&[&set("STC:CL_GEO", "whole")], &[]), overlay(&[&set(LIST, "urn")], &[]));
    for overlays in [[&urn, &whole, &class, &all], [&all, &class, &whole, &urn], [&class, &urn, &all, &whole]] {
        let overlays: Vec<Overlay> = overlays.into_iter().cloned().collect();
        let applied = folded(&overlays, None).unwrap();
        let notes = notes(&applied.artefacts);
        assert_eq!(notes["Codelist=STC:CL_GEO(1.0)"], "urn");
        assert_eq!(notes["Codelist=STC:CL_GEO(2.0)"], "whole");
        assert_eq!(notes["ConceptScheme=STC:CL_GEO(1.0)"], "whole");
        assert_eq!(notes["Code 35 of STC:CL_GEO(1.0)"], "all");
    }
}

#[test]
fn what_is_equally_specific_applies_in_the_order_of_overlays_and_then_of_the_document() {
    let first = overlay(&[&add("Attribute", "1a"), &add("DataAttribute", "1b"), &add("Attribute", "1c")], &[]);
    let second = overlay(&[&add("DataAttribute", "2a"), &add("*", "2b")], &[]);
    let status = |overlays: &[Overlay]| {
        let applied = folded(overlays, None).unwrap();
        notes(&applied.artefacts)["Attribute STATUS of STC:DSD(1.0)"].clone()
    };
    assert_eq!(status(&[first.clone(), second.clone()]), "2b,1a,1b,1c,2a");
    assert_eq!(status(&[second, first]), "2b,2a,1a,1b,1c");
}

#[test]
fn an_audience_sees_its_entries_and_those_for_everybody() {
    let scoped = |value: &str, scope: &str| {
        format!(
            r#"{{"selector":"{LIST}","op":"add","type":"NOTE","annotation":{{"value":"{value}"}},"scope":{scope}}}"#
        )
    };
    let overlays =
        [overlay(&[&scoped("in", "\"internal\""), &scoped("all", "null"), &scoped("pub", "\"public\"")], &[])];
    for (audience, expected) in [
        (None, "list,in,all,pub"),
        (Some("internal"), "list,in,all"),
        (Some("public"), "list,all,pub"),
        (Some("other"), "list,all"),
        (Some(""), "list,all"),
    ] {
        let applied = folded(&overlays, audience).unwrap();
        assert_eq!(notes(&applied.artefacts)["Codelist=STC:CL_GEO(1.0)"], expected, "{audience:?}");
    }
}

#[test]
fn a_hook_gets_what_was_dropped_in_its_order_and_decides_what_is_appended() {
    let joined = |dropped: &[Annotation], new: Annotation| {
        let values = dropped.iter().chain([&new]).filter_map(|annotation| annotation.value.clone());
        vec![note("NOTE", &values.collect::<Vec<_>>().join("+")), note("ORDER", "2")]
    };
    let hooks = BTreeMap::from([(
        "NOTE".to_owned(),
        MergeHook { id: HookId::new("acme", "join", "1").unwrap(), merge: &joined },
    )]);
    let overlays = [overlay(&[&set(CODE, "new"), &add(LIST, "beside")], &[])];
    let applying = Applying::new(&overlays, None, Purpose::Serving).unwrap();
    let applied = applying.apply(artefacts(), &hooks).unwrap();
    let Artefact::Codelist(list) = &applied.artefacts[0] else { panic!("{:?}", applied.artefacts[0]) };
    assert_eq!(list.codes[1].annotations, [note("ORDER", "1"), note("NOTE", "old+older+new"), note("ORDER", "2")]);
    // A hook is asked by set alone.
    assert_eq!(list.common.annotations, [note("NOTE", "list"), note("NOTE", "beside")]);
}

#[test]
fn an_entry_that_writes_what_is_there_changes_nothing() {
    let applied = folded(&[overlay(&[&set(LIST, "list")], &[&name(CODE, "set", "name", "fr", "35")])], None).unwrap();
    assert!(applied.changed.is_empty(), "{:?}", applied.changed);
    assert_eq!((applied.entries[0].selected, applied.entries[0].changed), (1, 0));
    assert_eq!((applied.texts[0].selected, applied.texts[0].changed), (1, 0));
    // Two that undo each other change at their turn, and nothing in the end.
    let there = format!(r#"{{"selector":"{LIST}","op":"remove","type":"NEW"}}"#);
    let new = format!(r#"{{"selector":"{LIST}","op":"add","type":"NEW","annotation":{{}}}}"#);
    let applied = folded(&[overlay(&[&new, &there], &[])], None).unwrap();
    assert!(applied.changed.is_empty());
    assert_eq!([applied.entries[0].changed, applied.entries[1].changed], [1, 1]);
    assert_eq!(applied.artefacts, artefacts());
}

#[test]
fn a_text_sets_and_removes_one_language_and_the_most_specific_wins() {
    let texts = [
        name(CODE, "set", "name", "fr", "Ontario (fr)"),
        name("Code", "set", "name", "fr", "Code (fr)"),
        name("Code", "remove", "name", "en", ""),
        name(CODE, "set", "description", "en", "A province"),
        name("STC:CL_GEO", "set", "name", "fr", "Géographie"),
        name(LIST, "remove", "description", "fr", ""),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let applied = folded(&[overlay(&[], &texts)], None).unwrap();
    let Artefact::Codelist(list) = &applied.artefacts[0] else { panic!("{:?}", applied.artefacts[0]) };
    assert_eq!(list.common.name, languages(&[("en", "CL_GEO"), ("fr", "Géographie")]));
    assert_eq!(list.codes[0].name, languages(&[("fr", "Code (fr)")]));
    assert_eq!(list.codes[1].name, languages(&[("fr", "Ontario (fr)")]));
    assert_eq!(list.codes[1].description, languages(&[("en", "A province")]));
    // Only names change: everything else is as it was.
    let mut back = list.clone();
    let Artefact::Codelist(before) = &artefacts()[0] else { unreachable!("the first is the list") };
    back.common.name = before.common.name.clone();
    for (code, before) in back.codes.iter_mut().zip(&before.codes) {
        code.name = before.name.clone();
        code.description = before.description.clone();
    }
    assert_eq!(back, *before);
    let selected: Vec<u64> = applied.texts.iter().map(|effect| effect.selected).collect();
    // In the order in which they applied: the class's, the agency's, the URNs'.
    assert_eq!(selected, [4, 4, 3, 1, 1, 1]);
}

#[test]
fn a_text_passes_over_components() {
    let applied = folded(&[overlay(&[], &[&name("*", "set", "description", "en", "x")])], None).unwrap();
    // Five artefacts, four codes and a concept; the components of the data structure have no description.
    assert_eq!((applied.texts[0].selected, applied.texts[0].changed), (10, 10));
}

#[test]
fn the_last_language_of_a_name_stays_and_that_of_a_description_may_go() {
    let last = [name(CODE, "remove", "name", "en", ""), name(CODE, "remove", "name", "fr", "")];
    let error = folded(&[overlay(&[], &[&last[0], &last[1]])], None).unwrap_err();
    assert_eq!(
        error,
        ApplyError::LastName { overlay: "o".to_owned(), position: 1, lang: "fr".to_owned(), urn: CODE.to_owned() }
    );
    assert!(error.to_string().contains(CODE) && error.to_string().contains("texts[1]"), "{error}");
    // A language that is not there is not the last one; another one set before makes room.
    let fine = [
        name(LIST, "remove", "name", "de", ""),
        name(LIST, "set", "name", "fr", "Liste"),
        name(LIST, "remove", "name", "en", ""),
        name(LIST, "set", "description", "en", "x"),
        name(LIST, "remove", "description", "en", ""),
    ];
    let fine: Vec<&str> = fine.iter().map(String::as_str).collect();
    let applied = folded(&[overlay(&[], &fine)], None).unwrap();
    assert_eq!(applied.artefacts[0].common().name, languages(&[("fr", "Liste")]));
    assert!(applied.artefacts[0].common().description.is_empty());
}

#[test]
fn a_server_refuses_a_text_that_applies_to_its_audience_and_no_other() {
    let text = format!(
        r#"{{"selector":"{CODE}","op":"set","field":"description","lang":"fr","text":"x","scope":"internal"}}"#
    );
    let overlays = [overlay(&[], &[]), overlay(&[&add(LIST, "x")], &[&text])];
    let edition = "0192f6a0-5c1e-7c3a-9f00-0a1b2c3d4e5f".parse().unwrap();
    for (audience, is_refused) in [(None, true), (Some("internal"), true), (Some("public"), false)] {
        let audience = audience.map(Audience::new);
        let served = Applying::new(&overlays, audience.as_ref(), Purpose::Serving);
        let token = effective_token(&edition, &overlays, audience.as_ref(), &Hooks::none());
        assert_eq!((served.is_err(), token.is_err()), (is_refused, is_refused), "{audience:?}");
        if let Err(error) = token {
            assert_eq!((error.overlay.as_str(), error.position, error.field), ("o", 0, "description"));
            assert!(error.to_string().contains("texts[0]") && error.fix().contains("jobctl run fold"), "{error}");
        }
        assert!(Applying::new(&overlays, audience.as_ref(), Purpose::Folding).is_ok());
    }
}
