//! Small messages of our own: what a reader does, on a clone without the reference data too.

use catalog_rules::sdmx::canonical::canonical_text;
use catalog_rules::sdmx::model::{Artefact, Representation};
use engine_rules::failure::ActivityError as _;

use super::super::{Dialect, HELD_BYTES, Message, read_message};

pub(super) const ML21: &str = r#"<?xml version="1.0"?>
<m:Structure xmlns:m="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message" xmlns:s="x" xmlns:c="y">
<m:Header><m:ID>A</m:ID></m:Header>
<m:Structures><s:Codelists><s:Codelist id="CL" agencyID="STC" isFinal="true">
<c:Name>Liste &amp; é&#233;</c:Name>
<s:Code id="A"><c:Name xml:lang="en">a</c:Name></s:Code>
<s:Code id="B"><c:Name xml:lang="en">b</c:Name><s:Parent><Ref id="A"/></s:Parent></s:Code>
</s:Codelist></s:Codelists></m:Structures>
</m:Structure>
"#;

pub(super) const JSON20: &str = r#"{"data": {"codelists": [{"codes": [
{"id": "A", "names": {"en": "a"}}, {"id": "B", "parent": "A", "names": {"en": "b"}}],
"id": "CL", "agencyID": "STC", "version": "1.0", "names": {"en": "Liste & éé"}}]}}
"#;

fn read(text: &str) -> Message {
    read_message(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn codes(message: &Message) -> Vec<(&'static str, &str)> {
    message.findings.iter().map(|finding| (finding.code.as_str(), finding.place.as_str())).collect()
}

fn only(message: &Message) -> &Artefact {
    assert_eq!(message.artefacts.len(), 1);
    &message.artefacts[0]
}

/// A message of SDMX-ML 3.0 with these structures.
fn ml30(structures: &str) -> String {
    format!(
        "<m:Structure xmlns:m=\"http://www.sdmx.org/resources/sdmxml/schemas/v3_0/message\" \
         xmlns:s=\"http://www.sdmx.org/resources/sdmxml/schemas/v3_0/structure\" \
         xmlns:c=\"http://www.sdmx.org/resources/sdmxml/schemas/v3_0/common\">\
         <m:Structures>{structures}</m:Structures></m:Structure>"
    )
}

#[test]
fn xml_and_json_give_the_same_artefact_but_for_what_json_cannot_say() {
    let (xml, json) = (read(ML21), read(JSON20));
    assert_eq!((xml.dialect, json.dialect), (Dialect::Ml21, Dialect::Json20));
    assert_eq!((codes(&xml), codes(&json)), (vec![], vec![]));
    let text = canonical_text(only(&xml)).unwrap();
    assert!(text.contains("\"legacy_is_final\":true") && text.contains("\"name\":{\"en\":\"Liste & éé\"}"), "{text}");
    assert_eq!(canonical_text(only(&json)).unwrap(), text.replace("is_final\":true", "is_final\":null"));
}

#[test]
fn what_is_no_structure_message_is_refused_by_name() {
    let root = |ns: &str, name: &str| format!("<m:{name} xmlns:m=\"{ns}\"></m:{name}>");
    let sdmx = "http://www.sdmx.org/resources/sdmxml/schemas";
    for (text, code, expected) in [
        (String::new(), "sdmx.empty", "the file is empty"),
        (" \n ".to_owned(), "sdmx.empty", "the file is empty"),
        ("DATAFLOW,FREQ\n".to_owned(), "sdmx.format", "begins with \"DATAFLOW,FREQ"),
        ("\u{0}\u{1}".to_owned(), "sdmx.format", "begins with"),
        (root(&format!("{sdmx}/v2_0/message"), "Structure"), "sdmx.version_2_0", "2.0 is not read"),
        (
            "<Structure xmlns=\"http://www.SDMX.org/resources/SDMXML/schemas/v2_0/message\"/>".to_owned(),
            "sdmx.version_2_0",
            "ask the service for SDMX-ML 2.1 or 3.0",
        ),
        (root(&format!("{sdmx}/v2_1/message"), "GenericData"), "sdmx.not_structures", "a data message (GenericData"),
        (root(&format!("{sdmx}/v2_1/message"), "Error"), "sdmx.not_structures", "an error message of a service"),
        ("<html><body>Not found</body></html>".to_owned(), "sdmx.not_structures", "root element html"),
        ("{}".to_owned(), "sdmx.not_structures", "a JSON document with the keys"),
        ("{\"Codelist\": []}".to_owned(), "sdmx.not_structures", "with the keys Codelist"),
        ("{\"data\": {\"dataSets\": []}}".to_owned(), "sdmx.not_structures", "a data message"),
        (
            "{\"meta\": {\"schema\": \"https://x/1.0/sdmx-json-structure-schema.json\"}, \"data\": {}}".to_owned(),
            "sdmx.not_structures",
            "SDMX-JSON 1.0",
        ),
        ("{\"data\": {\"codelists\": [{\"id\": \"\\ud800\"}]}}".to_owned(), "sdmx.json", "not well-formed JSON"),
        ("<!DOCTYPE x [<!ENTITY e SYSTEM \"/etc/passwd\">]><x/>".to_owned(), "sdmx.doctype", "a document type"),
        (ML21.replace("&#233;", "&e;"), "sdmx.doctype", "the entity &e;"),
        (ML21.replace("version=\"1.0\"?", "version=\"1.0\" encoding=\"latin1\"?"), "sdmx.encoding", "in latin1"),
        (ML21.replace("</m:Structures>", ""), "sdmx.xml", "not well-formed XML"),
        (ML21.replace("id=\"A\"", "id=\"A\" id=\"B\""), "sdmx.xml", "not well-formed XML"),
        (format!("{ML21}<x/>"), "sdmx.xml", "something follows the root element"),
    ] {
        let error = read_message(text.as_bytes()).err().unwrap_or_else(|| panic!("{text} was read"));
        assert_eq!(error.code(), code, "{text}: {error}");
        assert!(error.to_failure().message.contains(expected), "{text}: {error}");
    }
}

#[test]
fn nothing_is_dropped_without_a_finding() {
    let message = read(&ml30(
        "<s:Codelists><s:Codelist id=\"CL\" agencyID=\"STC\" version=\"1.0\" colour=\"red\" urn=\"urn:x\">stray\
         <c:Name>n</c:Name><s:Shape>round</s:Shape>\
         <s:Code id=\"A\" urn=\"urn:y.B\"><c:Name>a</c:Name><s:Weight unit=\"kg\">1</s:Weight></s:Code>\
         </s:Codelist><s:Codelist id=\"NO_AGENCY\"/><s:Wheel/></s:Codelists>\
         <s:Processes><s:Process id=\"P\" agencyID=\"STC\" version=\"1.0\"><s:ProcessStep id=\"A\"/></s:Process></s:Processes>",
    ));
    assert_eq!(
        codes(&message),
        [
            ("urn_mismatch", "line 1: Code"),
            ("not_represented", "line 1: Code/Weight"),
            ("urn_mismatch", "line 1: Codelist"),
            ("not_represented", "line 1: Codelist/@colour"),
            ("not_represented", "line 1: Codelist/Shape"),
            ("not_represented", "line 1: Codelist"),
            ("left_out", "line 1: Codelist"),
            ("not_represented", "line 1: Wheel"),
            ("unsupported_class", "line 1: Process"),
        ]
    );
    let urns: Vec<&str> = message.findings.iter().map(|finding| finding.urn.as_str()).collect();
    assert_eq!(urns[0], "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)");
    assert_eq!(urns[8], "urn:sdmx:org.sdmx.infomodel.process.Process=STC:P(1.0)");
    let json = read(
        "{\"data\": {\"codelists\": [{\"id\": \"CL\", \"agencyID\": \"STC\", \"version\": \"1.0\", \"name\": \"n\", \"x\": {\"y\": 1}, \
         \"codes\": [{\"id\": \"A\", \"name\": \"a\", \"weight\": [1, 2]}]}], \"wheels\": []}, \"errors\": [{\"title\": \"t\"}]}",
    );
    assert_eq!(
        codes(&json),
        [
            ("not_represented", "data.codelists[0].codes[0]/weight"),
            ("not_represented", "data.codelists[0].codes[0]/weight"),
            ("not_represented", "data.codelists[0]/x"),
            ("no_language", ""),
            ("not_represented", "data.wheels"),
            ("footer", "errors"),
        ]
    );
    assert!(json.findings[3].message.starts_with("2 texts"), "{}", json.findings[3].message);
    assert_eq!(json.findings[0].urn, "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)");
}

#[test]
fn values_of_the_wrong_kind_are_told_and_left_out() {
    let message = read(&ml30(
        "<s:ConceptSchemes><s:ConceptScheme id=\"CS\" agencyID=\"STC\" validFrom=\"soon\" isPartial=\"maybe\"><c:Name>n</c:Name>\
         <s:Concept id=\"C\"><c:Name>c</c:Name><s:CoreRepresentation maxOccurs=\"many\">\
         <s:TextFormat textType=\"Colour\" maxLength=\"1.5\" maxValue=\"INF\" isSequence=\"1\"/></s:CoreRepresentation>\
         </s:Concept></s:ConceptScheme></s:ConceptSchemes>",
    ));
    assert_eq!(
        codes(&message),
        [
            ("bad_value", "line 1: TextFormat/maxLength"),
            ("bad_value", "line 1: TextFormat/maxValue"),
            ("bad_value", "line 1: TextFormat"),
            ("bad_value", "line 1: CoreRepresentation/maxOccurs"),
            ("assumed", "line 1: ConceptScheme"),
            ("bad_value", "line 1: ConceptScheme/validFrom"),
            ("bad_value", "line 1: ConceptScheme/isPartial"),
        ]
    );
    let Artefact::ConceptScheme(scheme) = only(&message) else { panic!() };
    let Some(Representation::Text(facet)) = &scheme.concepts[0].core_representation else { panic!() };
    assert_eq!((facet.max_length, facet.max_value, facet.is_sequence), (None, None, Some(true)));
}

#[test]
fn control_characters_are_told_and_kept() {
    let message = read(
        "{\"data\": {\"codelists\": [{\"id\": \"CL\", \"agencyID\": \"STC\", \"version\": \"1.0\", \"names\": {\"en\": \"a\\u0001b\\tc\"}}]}}",
    );
    assert_eq!(codes(&message), [("control_character", "data.codelists[0].names")]);
    assert!(message.findings[0].message.contains("U+0001"));
    assert_eq!(only(&message).common().name["en"], "a\u{1}b\tc");
}

#[test]
fn a_component_takes_on_its_concepts_representation_wherever_that_stands() {
    let structure = "<s:DataStructures><s:DataStructure id=\"DSD\" agencyID=\"STC\" version=\"1.0\"><c:Name>d</c:Name>\
        <s:DataStructureComponents><s:DimensionList><s:Dimension>\
        <s:ConceptIdentity>urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=STC:CS(1.0).GEO</s:ConceptIdentity>\
        </s:Dimension></s:DimensionList></s:DataStructureComponents></s:DataStructure></s:DataStructures>";
    let scheme = "<s:ConceptSchemes><s:ConceptScheme id=\"CS\" agencyID=\"STC\" version=\"1.0\"><c:Name>c</c:Name>\
        <s:Concept id=\"GEO\"><c:Name>g</c:Name><s:CoreRepresentation><s:Enumeration>\
        urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)</s:Enumeration></s:CoreRepresentation></s:Concept>\
        </s:ConceptScheme></s:ConceptSchemes>";
    for structures in [format!("{structure}{scheme}"), format!("{scheme}{structure}")] {
        let message = read(&ml30(&structures));
        let Some(Artefact::DataStructure(structure)) = message.artefacts.last() else { panic!() };
        let list = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)".to_owned();
        assert_eq!(structure.dimensions[0].representation, Some(Representation::Enumerated(list)));
        assert_eq!(structure.dimensions[0].id, "GEO");
    }
}

#[test]
fn a_hierarchy_of_aliases_and_levels_is_resolved() {
    let message = read(
        &ML21
            .replace("s:Codelists>", "s:HierarchicalCodelists>")
            .replace("isFinal=\"true\"", "version=\"1.0\"")
            .replace("<s:Codelist ", "<s:HierarchicalCodelist ")
            .replace("</s:Codelist>", "</s:HierarchicalCodelist>")
            .replace(
                "<s:Code id=\"A\"><c:Name xml:lang=\"en\">a</c:Name></s:Code>",
                "<s:IncludedCodelist alias=\"GEO\"><URN>urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)</URN>\
                 </s:IncludedCodelist><s:Hierarchy id=\"H\" leveled=\"true\"><c:Name>h</c:Name>\
                 <s:HierarchicalCode id=\"X\"><s:CodelistAliasRef>GEO</s:CodelistAliasRef><s:CodeID><Ref id=\"CA\"/></s:CodeID>\
                 <s:HierarchicalCode id=\"Y\"><s:CodelistAliasRef>NONE</s:CodelistAliasRef><s:CodeID><Ref id=\"ON\"/></s:CodeID>\
                 <s:Level><Ref id=\"NO\"/></s:Level></s:HierarchicalCode><s:Level><Ref id=\"L\"/></s:Level></s:HierarchicalCode>\
                 <s:Level id=\"L\"><c:Name>l</c:Name></s:Level></s:Hierarchy>",
            )
            .replace(
                "<s:Code id=\"B\"><c:Name xml:lang=\"en\">b</c:Name><s:Parent><Ref id=\"A\"/></s:Parent></s:Code>",
                "",
            ),
    );
    let [Artefact::Hierarchy(hierarchy), Artefact::HierarchicalCodelist(list)] = message.artefacts.as_slice() else {
        panic!("{:?}", message.artefacts)
    };
    assert_eq!(list.hierarchies, ["urn:sdmx:org.sdmx.infomodel.codelist.Hierarchy=STC:H(1.0)"]);
    let top = &hierarchy.tree[0];
    assert_eq!(top.code.as_deref(), Some("urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO(1.0).CA"));
    assert_eq!(top.level.as_ref().map(|level| level.name["en"].as_str()), Some("l"));
    assert_eq!((&top.children[0].code, &top.children[0].level), (&None, &None));
    let told: Vec<&str> = message.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(told, ["unknown_level", "bad_reference", "unresolved_reference", "unresolved_reference"]);
}

#[test]
fn what_is_too_deep_or_too_large_is_refused_and_not_held() {
    let deep = 5_000;
    let nested = |name: &str| format!("{}{}", format!("<{name}>").repeat(deep), format!("</{name}>").repeat(deep));
    let error = read_message(
        ml30(&format!("<s:Codelists><s:Codelist id=\"A\" agencyID=\"A\">{}</s:Codelist></s:Codelists>", nested("s:X")))
            .as_bytes(),
    )
    .unwrap_err();
    assert_eq!(error.code(), "sdmx.too_deep", "{error}");
    // What is skipped may be as deep as it likes.
    assert!(
        read_message(ml30(&format!("<s:Wheels><s:Wheel>{}</s:Wheel></s:Wheels>", nested("s:X"))).as_bytes()).is_ok()
    );
    let json = format!("{{\"data\": {{\"codelists\": [{}{}]}}}}", "{\"x\":".repeat(deep), "}".repeat(deep));
    assert_eq!(read_message(json.as_bytes()).unwrap_err().code(), "sdmx.json");
    // A text of JSON without an end stops at its limit too, and what is skipped has none.
    let start = &b"{\"data\": {\"codelists\": [{\"id\": \"x"[..];
    let error = read_message(std::io::Read::chain(start, Endless(b"abcdefgh"))).unwrap_err();
    assert_eq!(error.code(), "sdmx.too_large", "{error}");
    let skipped = format!("{{\"x\": \"{}\", \"data\": {{}}}}", "y".repeat(super::super::EVENT_BYTES * 2));
    assert!(read_message(skipped.as_bytes()).is_ok());
    // A tag without an end, and an artefact of many small parts that are no items: both stop at their limit.
    let endless = std::io::Read::chain(
        ml30("").split("</m:Structures>").next().unwrap().to_owned().into_bytes().leak() as &[u8],
        Endless(b"<s:Codelists x=\""),
    );
    let error = read_message(endless).unwrap_err();
    assert!(matches!(error.code(), "sdmx.too_large" | "sdmx.xml"), "{error}");
    let start =
        ml30("<s:Codelists><s:Codelist id=\"A\" agencyID=\"A\">").split("</m:Structures>").next().unwrap().to_owned();
    let error = read_message(std::io::Read::chain(start.as_bytes(), Endless(b"<s:X/>"))).unwrap_err();
    assert_eq!(error.code(), "sdmx.too_large", "{error}");
    assert!(error.to_string().contains(&HELD_BYTES.to_string()), "{error}");
}

/// A text without an end.
struct Endless(&'static [u8]);

impl std::io::Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let size = into.len() / self.0.len() * self.0.len();
        for piece in into[..size].chunks_mut(self.0.len()) {
            piece.copy_from_slice(self.0);
        }
        Ok(size)
    }
}

#[test]
fn a_reader_that_fails_is_an_error_of_reading() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset"))
        }
    }
    for start in [&ML21.as_bytes()[..300], &JSON20.as_bytes()[..60], b""] {
        let error = read_message(std::io::Read::chain(start, Broken)).unwrap_err();
        assert_eq!(error.code(), "sdmx.io", "{error}");
    }
}

#[test]
fn reported_values_keep_their_kind() {
    let json = read(
        "{\"data\": {\"metadataSets\": [{\"id\": \"M\", \"agencyID\": \"STC\", \"version\": \"1.0\", \"names\": {\"en\": \"m\"}, \
         \"metadataflow\": \"urn:sdmx:org.sdmx.infomodel.metadatastructure.Metadataflow=STC:F(*)\", \"attributes\": [\
         {\"id\": \"A\", \"value\": 1}, {\"id\": \"B\", \"value\": 1.5}, {\"id\": \"C\", \"value\": true}, {\"id\": \"D\", \"value\": \"1\"}, \
         {\"id\": \"E\", \"value\": {\"en\": \"e\"}}, {\"id\": \"F\", \"attributes\": [{\"id\": \"G\", \"value\": \"g\"}]}]}]}}",
    );
    assert_eq!(codes(&json), []);
    let text = canonical_text(only(&json)).unwrap();
    for value in ["\"value\":1}", "\"value\":1.5}", "\"value\":true}", "\"value\":\"1\"}", "\"value\":{\"en\":\"e\"}}"]
    {
        assert!(text.contains(value), "{value}: {text}");
    }
    let xml = read(
        "<m:GenericMetadata xmlns:m=\"http://www.sdmx.org/resources/sdmxml/schemas/v3_0/message\" xmlns:g=\"g\" xmlns:c=\"c\">\
         <m:MetadataSet id=\"M\" agencyID=\"STC\" version=\"1.0\"><c:Name>m</c:Name>\
         <g:Metadataflow>urn:sdmx:org.sdmx.infomodel.metadatastructure.Metadataflow=STC:F(*)</g:Metadataflow>\
         <g:Attribute id=\"A\"><g:Value>1</g:Value><g:Value>2</g:Value><g:Attribute id=\"B\"><c:Text>b</c:Text></g:Attribute></g:Attribute>\
         </m:MetadataSet></m:GenericMetadata>",
    );
    assert_eq!(codes(&xml), []);
    let Artefact::MetadataSet(set) = only(&xml) else { panic!() };
    let told: Vec<_> = set.attributes.iter().map(|one| (one.id.as_str(), one.children.len())).collect();
    assert_eq!(told, [("A", 1), ("A", 0)]);
}

#[test]
fn a_time_dimension_has_a_format_whatever_the_message_says() {
    let structure = |time: &str| {
        ml30(&format!(
            "<s:DataStructures><s:DataStructure id=\"DSD\" agencyID=\"STC\" version=\"1.0\"><c:Name>d</c:Name>\
             <s:DataStructureComponents><s:DimensionList><s:TimeDimension{time}</s:TimeDimension></s:DimensionList>\
             </s:DataStructureComponents></s:DataStructure></s:DataStructures>\
             <s:ConceptSchemes><s:ConceptScheme id=\"CS\" agencyID=\"STC\" version=\"1.0\"><c:Name>c</c:Name>\
             <s:Concept id=\"T\"><c:Name>t</c:Name><s:CoreRepresentation><s:TextFormat textType=\"GregorianYear\" \
             isMultiLingual=\"false\"/></s:CoreRepresentation></s:Concept></s:ConceptScheme></s:ConceptSchemes>"
        ))
    };
    let concept =
        "<s:ConceptIdentity>urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=STC:CS(1.0).T</s:ConceptIdentity>";
    for (time, id, data_type) in [
        (">".to_owned(), "TIME_PERIOD", "ObservationalTimePeriod"),
        (format!(">{concept}"), "TIME_PERIOD", "GregorianYear"),
        (
            format!(" id=\"TIME\">{concept}<s:LocalRepresentation><s:TextFormat/></s:LocalRepresentation>"),
            "TIME",
            "ObservationalTimePeriod",
        ),
    ] {
        let message = read(&structure(&time));
        let Some(Artefact::DataStructure(structure)) = message.artefacts.last() else { panic!() };
        let found = structure.time_dimension.as_ref().unwrap();
        assert_eq!((found.id.as_str(), found.representation.data_type.as_deref()), (id, Some(data_type)), "{time}");
        assert_eq!(codes(&message).iter().any(|(code, _)| *code == "bad_id"), id == "TIME", "{time}");
    }
}

#[test]
fn maps_and_sets_of_sdmx_2_1_become_artefacts_of_their_own() {
    let reference =
        |id: &str, class: &str| format!("<Ref id=\"{id}\" agencyID=\"STC\" version=\"1.0\" class=\"{class}\"/>");
    let ends = |class: &str| {
        let (source, target) = (reference("A", class), reference("B", class));
        format!("<c:Name>n</c:Name><s:Source>{source}</s:Source><s:Target>{target}</s:Target>")
    };
    let item = "<s:Source><Ref id=\"X\"/></s:Source><s:Target><Ref id=\"Y\"/></s:Target>";
    let message = read(&ML21.replace("s:Codelists>", "s:StructureSets>").replace("<s:Codelist ", "<s:StructureSet ").replace(
        "</s:Codelist>",
        "</s:StructureSet>",
    ).replace("<s:Code id=\"A\"><c:Name xml:lang=\"en\">a</c:Name></s:Code>", &format!(
        "<s:RelatedStructure><s:DataStructure>{}</s:DataStructure></s:RelatedStructure>\
         <s:StructureMap id=\"SM\" isExtension=\"true\">{}<s:ComponentMap>{item}<s:RepresentationMapping><s:CodelistMap>\
         <Ref id=\"CM\" agencyID=\"STC\" version=\"1.0\" class=\"CodelistMap\" package=\"mapping\"/></s:CodelistMap></s:RepresentationMapping></s:ComponentMap></s:StructureMap>\
         <s:CodelistMap id=\"CM\">{}<s:CodeMap>{item}</s:CodeMap></s:CodelistMap>\
         <s:ConceptSchemeMap id=\"CSM\">{}<s:ConceptMap>{item}</s:ConceptMap></s:ConceptSchemeMap>\
         <s:CategorySchemeMap id=\"CAM\">{}<s:CategoryMap>{item}</s:CategoryMap></s:CategorySchemeMap>\
         <s:OrganisationSchemeMap id=\"OSM\">{}<s:OrganisationMap>{item}</s:OrganisationMap></s:OrganisationSchemeMap>",
        reference("D", "DataStructure"), ends("DataStructure"), ends("Codelist"), ends("ConceptScheme"), ends("CategoryScheme"), ends("AgencyScheme"),
    )).replace("<s:Code id=\"B\"><c:Name xml:lang=\"en\">b</c:Name><s:Parent><Ref id=\"A\"/></s:Parent></s:Code>", ""));
    let classes: Vec<&str> = message.artefacts.iter().map(Artefact::class).collect();
    assert_eq!(
        classes,
        [
            "StructureMap",
            "RepresentationMap",
            "ConceptSchemeMap",
            "CategorySchemeMap",
            "OrganisationSchemeMap",
            "StructureSet"
        ]
    );
    let told: Vec<_> = codes(&message).into_iter().filter(|(code, _)| *code != "unresolved_reference").collect();
    assert_eq!(told, []);
    let Some(Artefact::StructureSet(set)) = message.artefacts.last() else { panic!() };
    assert_eq!(set.maps.len(), 5);
    assert_eq!(set.maps[1], "urn:sdmx:org.sdmx.infomodel.structuremapping.RepresentationMap=STC:CM(1.0)");
    let Artefact::StructureMap(map) = &message.artefacts[0] else { panic!() };
    assert_eq!(map.maps[0].representation_map.as_ref(), Some(&set.maps[1]));
    assert!(map.is_extension);
    let text = canonical_text(&message.artefacts[2]).unwrap();
    assert!(text.contains("\"source_id\":\"X\",\"target_id\":\"Y\""), "{text}");
}
