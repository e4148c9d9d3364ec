//! `jobctl sdmx inspect`.

use crate::support::env::Env;

const GOOD: &str = r#"<m:Structure xmlns:m="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message" xmlns:s="x" xmlns:c="y">
<m:Structures><s:Codelists><s:Codelist id="CL_MIN" agencyID="STC"><c:Name>Minimal</c:Name>
<s:Code id="A"><c:Name>Annual</c:Name></s:Code></s:Codelist></s:Codelists></m:Structures></m:Structure>"#;

const TEXT: &str = "{\"$class\":\"Codelist\",\"annotations\":[],\"codes\":[{\"$class\":\"Code\",\"annotations\":[],\
\"description\":{},\"id\":\"A\",\"links\":[],\"name\":{\"en\":\"Annual\"},\"parent_id\":null,\"uri\":null}],\
\"description\":{},\"extensions\":[],\"id\":\"CL_MIN\",\"is_external_reference\":false,\"is_partial\":false,\
\"is_partial_language\":false,\"legacy_is_final\":null,\"links\":[],\"maintainer\":\"STC\",\"name\":{\"en\":\"Minimal\"},\
\"service_url\":null,\"structure_url\":null,\"uri\":null,\"valid_from\":null,\"valid_to\":null,\"version\":\"1.0\"}";

#[test]
fn a_message_is_inspected_without_a_catalog() {
    let env = Env::empty();
    let file = env.path("good.xml");
    std::fs::write(&file, GOOD).unwrap();
    let file = file.to_str().unwrap();
    let urn = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_MIN(1.0)";
    let document = env.jobctl(["sdmx", "inspect", file, "--json"]).exits(0).json();
    assert_eq!(document["schema"], "jobctl.sdmx.inspect/1");
    let artefact = &document["artefacts"][0];
    assert_eq!(
        (&artefact["urn"], &artefact["class"], &artefact["text"]),
        (&urn.into(), &"Codelist".into(), &TEXT.into())
    );
    let fingerprint = artefact["fingerprint"].as_str().unwrap();
    assert_eq!(fingerprint.len(), 64);
    assert_eq!(document["findings"], serde_json::json!([]));
    env.jobctl(["sdmx", "inspect", file]).exits(0).says(&["1 artefacts, 0 findings", urn, fingerprint]);
    env.jobctl(["sdmx", "inspect", file, "--text"]).exits(0).says(&[TEXT, fingerprint]);
}

#[test]
fn findings_are_told_and_end_with_code_6() {
    let env = Env::empty();
    let file = env.path("bad.xml");
    std::fs::write(&file, GOOD.replace("</s:Code>", "<s:Parent><Ref id=\"Z\"/></s:Parent></s:Code>")).unwrap();
    let file = file.to_str().unwrap();
    env.jobctl(["sdmx", "inspect", file]).exits(6).says(&["missing_parent of urn:", "at codes[0]", "\"Z\""]);
    let document = env.jobctl(["sdmx", "inspect", file, "--json"]).exits(6).json();
    let finding = &document["findings"][0];
    assert_eq!((&finding["code"], &finding["place"]), (&"missing_parent".into(), &"codes[0]".into()));
    assert_eq!(finding["urn"], "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_MIN(1.0)");
    assert!(finding["message"].as_str().unwrap().contains("is not among the items"));
}

#[test]
fn what_is_no_structure_message_is_refused_with_its_reason() {
    let env = Env::empty();
    let file = env.path("old.xml");
    std::fs::write(&file, GOOD.replace("v2_1", "v2_0")).unwrap();
    let refused = env.jobctl(["sdmx", "inspect", file.to_str().unwrap(), "--json"]).exits(1).json();
    assert_eq!(refused["failure"]["code"], "sdmx.version_2_0");
    env.jobctl(["sdmx", "inspect", "nowhere.xml"]).exits(2).says(&["nowhere.xml cannot be opened"]);
}
