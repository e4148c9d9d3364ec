//! What is read, and what is refused where.

use super::*;

fn findings(json: &str) -> Vec<(String, &'static str)> {
    check(json.as_bytes()).findings.into_iter().map(|finding| (finding.place, finding.fault.code())).collect()
}

/// A document with one entry, which `entry` writes.
fn one(entry: &str) -> String {
    format!(r#"{{"format_version":"1.2","id":"o","entries":[{entry}]}}"#)
}

fn one_text(text: &str) -> String {
    format!(r#"{{"format_version":"1.2","id":"o","entries":[],"texts":[{text}]}}"#)
}

#[test]
fn every_refusal_names_its_place_and_its_fault() {
    for (json, expected) in [
        (r#"[]"#.to_owned(), vec![("", "wrong_type")]),
        (r#"null"#.to_owned(), vec![("", "wrong_type")]),
        (r#"{"format_version":"1.2","id":"o","entries":[]"#.to_owned(), vec![("", "not_json")]),
        (r#"{"format_version":"1.2","id":"o","entries":[]} x"#.to_owned(), vec![("", "not_json")]),
        (r#"{"format_version":"1.2","id":"\ud800","entries":[]}"#.to_owned(), vec![("", "not_json")]),
        (
            r#"{}"#.to_owned(),
            vec![("format_version", "missing_field"), ("id", "missing_field"), ("entries", "missing_field")],
        ),
        (r#"{"format_version":"2.0","whatever":1}"#.to_owned(), vec![("format_version", "other_major")]),
        (r#"{"format_version":"0.9","id":"o","entries":[]}"#.to_owned(), vec![("format_version", "other_major")]),
        (r#"{"format_version":"1","id":"o","entries":[]}"#.to_owned(), vec![("format_version", "bad_format_version")]),
        (
            r#"{"format_version":"1.02","id":"o","entries":[]}"#.to_owned(),
            vec![("format_version", "bad_format_version")],
        ),
        (r#"{"format_version":1.2,"id":"o","entries":[]}"#.to_owned(), vec![("format_version", "wrong_type")]),
        (
            r#"{"format_version":"1.2","id":7,"entries":{}}"#.to_owned(),
            vec![("id", "wrong_type"), ("entries", "wrong_type")],
        ),
        (
            r#"{"format_version":"1.2","id":"o","entries":[],"entries":[]}"#.to_owned(),
            vec![("entries", "duplicate_key")],
        ),
        (r#"{"format_version":"1.2","id":"o","entries":[],"texts":null}"#.to_owned(), vec![("texts", "wrong_type")]),
        (
            r#"{"format_version":"1.2","id":"o","entries":[],"a b":1,"":2}"#.to_owned(),
            vec![(r#"["a b"]"#, "unknown_field"), (r#"[""]"#, "unknown_field")],
        ),
        (one("1"), vec![("entries[0]", "wrong_type")]),
        (
            one("{}"),
            vec![
                ("entries[0].selector", "missing_field"),
                ("entries[0].op", "missing_field"),
                ("entries[0].type", "missing_field"),
            ],
        ),
        (
            one(r#"{"selector":"*","op":"set","type":"N","annotation":{"text":{"en":"a","en":"b"}}}"#),
            vec![("entries[0].annotation.text.en", "duplicate_key")],
        ),
        (
            one(r#"{"selector":"*","op":"set","type":"N","annotation":{"text":{"fr-CA":1}}}"#),
            vec![(r#"entries[0].annotation.text["fr-CA"]"#, "wrong_type")],
        ),
        (
            one(r#"{"selector":"*","op":"set","type":"N","annotation":{"text":null,"urls":[]}}"#),
            vec![("entries[0].annotation.urls", "unknown_field"), ("entries[0].annotation.text", "wrong_type")],
        ),
        (
            one(r#"{"selector":"*","op":"Set","type":"N","annotation":{},"scope":1}"#),
            vec![("entries[0].op", "unknown_word"), ("entries[0].scope", "wrong_type")],
        ),
        (
            one(r#"{"selector":"*","op":"set","type":"N"},{"selector":"","op":"add","type":"N","annotation":null}"#),
            vec![
                ("entries[0].annotation", "nothing_to_write"),
                ("entries[1].selector", "not_a_selector"),
                ("entries[1].annotation", "nothing_to_write"),
            ],
        ),
        (
            one(r#"{"selector":"*","op":"remove","type":"N","annotation":{}}"#),
            vec![("entries[0].annotation", "not_written")],
        ),
        (
            one_text(r#"{"selector":"Code","op":"add","field":"uri","lang":null,"text":"x"}"#),
            vec![("texts[0].op", "unknown_word"), ("texts[0].field", "unknown_word"), ("texts[0].lang", "wrong_type")],
        ),
        (
            one_text(r#"{"selector":"Code","op":"set","field":"name","lang":"fr","type":"x"}"#),
            vec![("texts[0].type", "unknown_field"), ("texts[0].text", "nothing_to_write")],
        ),
        (
            one_text(r#"{"selector":"Code","op":"remove","field":"name","lang":"fr","text":""}"#),
            vec![("texts[0].text", "not_written")],
        ),
    ] {
        let expected: Vec<(String, String)> =
            expected.into_iter().map(|(place, code)| (place.to_owned(), format!("overlay.{code}"))).collect();
        let found: Vec<(String, String)> =
            findings(&json).into_iter().map(|(place, code)| (place, code.to_owned())).collect();
        assert_eq!(found, expected, "{json}");
        let error = Overlay::decode(json.as_bytes()).unwrap_err();
        assert!(error.findings.iter().all(|finding| finding.fault.is_refused()), "{json}");
        // Place, found and expected are in what a person reads.
        for finding in &error.findings {
            let text = finding.to_string();
            assert!(
                text.contains("found ") && text.contains("; expected ") && text.starts_with("edition §5."),
                "{text}"
            );
            assert!(text.contains(if finding.place.is_empty() { "the document" } else { &finding.place }), "{text}");
        }
    }
    let text = Overlay::decode(br#"{"format_version":"1.2","id":"o","entries":[{"selektor":"*"}]}"#).unwrap_err();
    assert_eq!(
        text.to_string().lines().nth(1).unwrap(),
        "  edition §5.1: entries[0].selektor: found a field that the format does not have; expected one of selector, op, \
         type, annotation, scope"
    );
}

#[test]
fn bytes_that_are_no_text_are_refused_and_deep_nesting_does_not_overflow() {
    assert_eq!(check(b"\xff").findings[0].fault.code(), "overlay.not_json");
    let deep = format!(r#"{{"entries":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(findings(&deep), [(String::new(), "overlay.not_json")]);
}

#[test]
fn every_one_x_reads_the_same() {
    for version in ["1.0", "1.1", "1.2", "1.99"] {
        let read = decode(&format!(
            r#"{{"format_version":"{version}","id":"o","entries":[],
               "texts":[{{"selector":"*","op":"remove","field":"name","lang":"fr","scope":"public"}}]}}"#
        ));
        assert_eq!(read.format_version.to_string(), version);
        assert_eq!(read.texts.len(), 1);
        assert_eq!(read.audiences(), [&Audience::new("public")]);
    }
}

#[test]
fn a_selector_has_one_of_four_forms() {
    for (text, specificity) in [
        ("*", 0),
        ("Codelist", 1),
        ("Code", 1),
        ("STC:CL_GEO", 2),
        ("STC.SUB:CL-GEO@1$", 2),
        (LIST, 3),
        (CODE, 3),
        ("urn:sdmx:org.sdmx.infomodel.categoryscheme.Category=AG:CS(1.0).PARENT.CHILD", 3),
    ] {
        let selector: Selector = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((selector.specificity(), selector.as_str()), (specificity, text));
    }
    for text in ["", " *", "Code list", "1Code", "STC:", ":CL", "STC:CL:X", "STC:CL(1.0)", "STC..X:CL", "urn:x", "Codé"]
    {
        assert!(text.parse::<Selector>().is_err(), "{text:?} passed");
    }
}

#[test]
fn what_cannot_have_an_effect_is_told_and_not_refused() {
    let json = r#"{"format_version":"1.2","id":"","entries":[
        {"selector":"Codlist","op":"remove","type":""},
        {"selector":"urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL.35","op":"remove","type":"N","scope":""},
        {"selector":"*","op":"add","type":"N","annotation":{"text":{"en_CA":"x","_default":"y","fr-CA":"z"}}}],
        "texts":[
        {"selector":"Dimension","op":"set","field":"name","lang":"","text":""},
        {"selector":"urn:sdmx:org.sdmx.infomodel.datastructure.Dataflw=STC:DF(1.0)","op":"remove","field":"name","lang":"en"}]}"#;
    let expected = [
        ("id", "empty"),
        ("entries[0].selector", "unknown_class"),
        ("entries[0].type", "empty"),
        ("entries[1].selector", "no_version"),
        ("entries[1].scope", "empty"),
        ("entries[2].annotation.text", "not_a_language"),
        ("texts[0].selector", "no_names"),
        ("texts[0].lang", "not_a_language"),
        ("texts[0].text", "empty"),
        ("texts[1].selector", "unknown_class"),
    ];
    let expected: Vec<(String, String)> =
        expected.into_iter().map(|(place, code)| (place.to_owned(), format!("overlay.{code}"))).collect();
    let found: Vec<(String, String)> =
        findings(json).into_iter().map(|(place, code)| (place, code.to_owned())).collect();
    assert_eq!(found, expected);
    assert!(check(json.as_bytes()).overlay.is_some_and(|overlay| overlay.entries.len() == 3));
    assert!(Overlay::decode(json.as_bytes()).is_ok());
}

#[test]
fn every_class_that_has_targets_is_known_to_the_check() {
    let mut seen = Vec::new();
    for mut artefact in artefacts() {
        super::super::target::each_target(&mut artefact, |target| {
            for class in target.named.classes {
                let has_names = target.texts.is_some();
                let remove = |class: &str| {
                    overlay(&[], &[&format!(r#"{{"selector":"{class}","op":"remove","field":"name","lang":"en"}}"#)])
                };
                let canonical = remove(class).canonical_json(None);
                let codes: Vec<_> = check(canonical.as_bytes()).findings;
                assert_eq!(codes.is_empty(), has_names, "{class}: {codes:?}");
                assert!(codes.iter().all(|finding| finding.fault.code() == "overlay.no_names"), "{class}: {codes:?}");
                seen.push(*class);
            }
            Ok::<(), ()>(())
        })
        .unwrap();
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() >= 11, "{seen:?}");
}

#[test]
fn a_hook_is_spelt_as_the_token_has_it() {
    let hooks: Hooks = "ORDER=acme:sort@2".parse().unwrap();
    let hooks = hooks.and("NOTE=acme-labels:notes@1.2".parse().unwrap());
    assert_eq!(hooks.to_string(), "NOTE=acme-labels:notes@1.2,ORDER=acme:sort@2");
    assert_eq!(Hooks::none().to_string(), "default");
    for bad in [
        "",
        "NOTE",
        "NOTE=",
        "NOTE=a:b",
        "NOTE=a@b",
        "=a:b@1",
        "NOTE=:b@1",
        "NOTE=a:@1",
        "NOTE=a:b@",
        "NOTE=a:b@1@2",
        "NOTE=a:b:c@1",
        "NO,TE=a:b@1",
        "NOTE=a=b:c@1",
        "NOTE=a:b@1\n",
        "N:T=a:b@1",
        "N@T=a:b@1",
    ] {
        assert!(bad.parse::<Hooks>().is_err(), "{bad:?} passed");
    }
    assert!(HookId::new("a", "b", "1,2").is_err());
    assert!(Hooks::none().with("", HookId::new("a", "b", "1").unwrap()).is_err());
}
