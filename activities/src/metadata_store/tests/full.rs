//! Artefacts that leave no field at its default.

use catalog_rules::instant::Instant;
use catalog_rules::sdmx::model::{
    Agency, AgencyScheme, Annotation, AnnotationUrl, Artefact, AttachmentLevel, Attribute, CascadeSelection, Code,
    CodeSelection, Codelist, CodelistExtension, Concept, ConceptScheme, Contact, DataStructure, Dataflow, Dimension,
    Facet, Group, InclusionMode, InternationalString, IsoConceptReference, Link, Maintained, Measure, MeasureDimension,
    MemberValue, MetadataAttributeUsage, Representation, SentinelValue, TimeDimension, Usage,
};

fn languages(texts: &[(&str, &str)]) -> InternationalString {
    texts.iter().map(|(language, text)| ((*language).to_owned(), (*text).to_owned())).collect()
}

pub(super) fn common(id: &str) -> Maintained {
    Maintained {
        id: id.to_owned(),
        maintainer: "STC".to_owned(),
        version: "1.0".to_owned(),
        name: languages(&[("en", "N"), ("EN-ca", "n"), ("", "without"), ("fr", "É\u{0}\n\"'")]),
        ..Maintained::default()
    }
}

fn notes(of: &str) -> Vec<Annotation> {
    let url = |url: &str| AnnotationUrl {
        url: url.to_owned(),
        lang: Some("fr".to_owned()),
        urn: None,
        r#type: Some("html".to_owned()),
    };
    let full = Annotation {
        id: Some(format!("{of} 1")),
        title: Some("t".to_owned()),
        r#type: Some("NOTE".to_owned()),
        urls: vec![url("b"), url("a")],
        text: languages(&[("fr", "x"), ("en", "y")]),
        value: Some("v".to_owned()),
    };
    vec![full, Annotation::default(), Annotation { id: Some(String::new()), ..Annotation::default() }]
}

fn links(of: &str) -> Vec<Link> {
    let link = |rel: &str| Link { rel: rel.to_owned(), url: of.to_owned(), ..Link::default() };
    vec![link("z"), Link { urn: Some("u".into()), r#type: Some("t".into()), hreflang: Some("h".into()), ..link("a") }]
}

fn facet() -> Facet {
    let sentinel = |value: &str, name: &[(&str, &str)]| SentinelValue {
        value: value.to_owned(),
        name: languages(name),
        description: languages(&[("en", "d")]),
    };
    Facet {
        data_type: Some("Decimal".to_owned()),
        max_length: Some(i64::from(i32::MAX)),
        min_length: Some(0),
        max_value: Some(1e300),
        min_value: Some(-0.0),
        decimals: Some(-2),
        pattern: Some("[0-9]+".to_owned()),
        start_value: Some(0.1),
        end_value: Some(5e-324),
        is_sequence: Some(false),
        is_multilingual: false,
        interval: Some(1.0),
        time_interval: Some("P1D".to_owned()),
        start_time: Some("2020".to_owned()),
        end_time: Some("2021".to_owned()),
        sentinel_values: vec![sentinel("-1", &[("en", "a"), ("fr", "b")]), sentinel("", &[])],
    }
}

pub(super) fn text(facet: Facet) -> Option<Representation> {
    Some(Representation::Text(Box::new(facet)))
}

pub(super) fn enumerated(urn: &str) -> Option<Representation> {
    Some(Representation::Enumerated(urn.to_owned()))
}

const LIST: &str = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_FULL(1.0)";

/// Artefacts in which every field is something else than its default, and some are empty where others are absent.
pub(super) fn full() -> Vec<Artefact> {
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut everything = common("CL_FULL");
    everything.description = languages(&[("en", "D")]);
    everything.legacy_is_final = Some(false);
    everything.annotations = notes("list");
    everything.valid_from = Some(Instant::from_us(-62_135_596_800_000_000));
    everything.valid_to = Some("9999-12-31T23:59:59.999999Z".parse().unwrap());
    everything.uri = Some(String::new());
    everything.links = links("list");
    everything.is_external_reference = true;
    everything.service_url = Some("s".to_owned());
    everything.structure_url = Some("t".to_owned());
    everything.is_partial_language = true;
    let code = |id: &str, parent: Option<&str>| Code {
        id: id.to_owned(),
        name: languages(&[("fr", "b"), ("en", id)]),
        description: InternationalString::new(),
        parent_id: parent.map(str::to_owned),
        annotations: notes(id),
        uri: Some(id.to_owned()),
        links: links(id),
    };
    let selection = |mode, members| CodelistExtension {
        codelist: LIST.to_owned(),
        selection: Some(CodeSelection { mode, members }),
        prefix: None,
    };
    let member = |value: &str, cascade| MemberValue { value: value.to_owned(), cascade };
    let list = Codelist {
        common: everything,
        codes: vec![code("b", Some("a")), code("a", None), code("c", Some("not in this list"))],
        extensions: vec![
            selection(
                InclusionMode::Exclude,
                vec![
                    member("z", Some(CascadeSelection::ExcludeRoot)),
                    member("a", Some(CascadeSelection::SelfOnly)),
                    member("a", None),
                    member("b%", Some(CascadeSelection::IncludeDescendants)),
                ],
            ),
            selection(InclusionMode::Include, vec![]),
            CodelistExtension { codelist: LIST.to_owned(), selection: None, prefix: Some("p".to_owned()) },
        ],
        is_partial: true,
    };
    let contact = Contact {
        name: languages(&[("en", "n")]),
        department: languages(&[("en", "d"), ("fr", "e")]),
        role: languages(&[("en", "r")]),
        phones: strings(&["2", "1", "2"]),
        faxes: strings(&["3"]),
        x400s: strings(&["4"]),
        uris: strings(&["5"]),
        emails: strings(&["6"]),
        id: Some("i".to_owned()),
    };
    let agency = |id: &str, contacts| Agency {
        id: id.to_owned(),
        name: languages(&[("en", id)]),
        description: languages(&[("fr", id)]),
        contacts,
        annotations: notes(id),
        uri: None,
        links: links(id),
    };
    let agencies = AgencyScheme {
        common: common("AGENCIES"),
        agencies: vec![agency("Z", vec![contact.clone(), Contact::default(), contact]), agency("A", vec![])],
        is_partial: true,
    };
    let concept = Concept {
        id: "b".to_owned(),
        name: languages(&[("en", "b")]),
        description: languages(&[("en", "d")]),
        core_representation: text(facet()),
        parent_id: Some("a".to_owned()),
        enumeration_format: Some(facet()),
        iso_concept_reference: Some(IsoConceptReference {
            concept_agency: "x".to_owned(),
            concept_scheme_id: "y".to_owned(),
            concept_id: "z".to_owned(),
        }),
        min_occurs: 0,
        max_occurs: None,
        annotations: notes("concept"),
        uri: Some("u".to_owned()),
        links: links("concept"),
    };
    let scheme = ConceptScheme {
        common: common("CS"),
        concepts: vec![
            concept,
            Concept { id: "a".to_owned(), core_representation: enumerated(LIST), ..Concept::default() },
            Concept { id: "c".to_owned(), core_representation: text(Facet::default()), ..Concept::default() },
            Concept { id: "d".to_owned(), enumeration_format: Some(Facet::default()), ..Concept::default() },
        ],
        is_partial: true,
    };
    let flow = Dataflow {
        common: common("DF"),
        structure: Some("urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=STC:DSD(1.0)".to_owned()),
        dimension_constraint: strings(&["B", "A"]),
    };
    let mut empty_groups = common("DSD_EMPTY");
    empty_groups.version = "2.0.0-draft".to_owned();
    vec![
        Artefact::AgencyScheme(agencies),
        Artefact::Codelist(list),
        Artefact::ConceptScheme(scheme),
        Artefact::DataStructure(Box::new(full_structure())),
        Artefact::DataStructure(Box::new(DataStructure {
            common: empty_groups,
            groups: Some(vec![]),
            ..DataStructure::default()
        })),
        Artefact::Dataflow(Box::new(flow)),
    ]
}

pub(super) fn full_structure() -> DataStructure {
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let concept = |id: &str| Some(format!("urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=STC:CS(1.0).{id}"));
    let dimension = |id: &str, representation, enumeration_format| Dimension {
        id: id.to_owned(),
        concept: concept(id),
        representation,
        enumeration_format,
        annotations: notes(id),
        concept_role: strings(&["ENTITY", "A"]),
        uri: Some(id.to_owned()),
        links: links(id),
    };
    let attribute = |id: &str, attachment| Attribute {
        id: id.to_owned(),
        usage: Usage::Mandatory,
        attachment,
        related_dimensions: None,
        optional_dimensions: ["é", "a", "B"].map(str::to_owned).into(),
        related_measures: Some(vec![]),
        related_group: Some("g".to_owned()),
        attachment_groups: strings(&["g", "f"]),
        concept: None,
        representation: enumerated(LIST),
        enumeration_format: Some(facet()),
        min_occurs: 0,
        max_occurs: Some(3),
        annotations: notes(id),
        concept_role: strings(&["R"]),
        uri: None,
        links: links(id),
    };
    let group = |id: &str| Group {
        id: id.to_owned(),
        dimension_ids: strings(&["Z", "A"]),
        attachment_constraint: Some("urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=STC:C(1.0)".to_owned()),
        annotations: notes(id),
        uri: Some(id.to_owned()),
    };
    let usage = |id: &str, related_dimensions| MetadataAttributeUsage {
        id: id.to_owned(),
        attachment: AttachmentLevel::Series,
        related_dimensions,
        optional_dimensions: ["b", "a"].map(str::to_owned).into(),
        related_group: Some("g".to_owned()),
        annotations: notes(id),
        uri: Some(id.to_owned()),
        links: links(id),
    };
    DataStructure {
        common: common("DSD"),
        dimensions: vec![
            dimension("Z", enumerated(LIST), Some(facet())),
            dimension("A", text(facet()), None),
            dimension("N", None, None),
        ],
        time_dimension: Some(TimeDimension {
            id: "TIME_PERIOD".to_owned(),
            concept: concept("TIME_PERIOD"),
            representation: facet(),
            annotations: notes("time"),
            uri: Some("t".to_owned()),
            links: links("time"),
        }),
        measure_dimension: Some(MeasureDimension {
            id: "MEASURE".to_owned(),
            concept: None,
            representation: enumerated("urn:sdmx:org.sdmx.infomodel.conceptscheme.ConceptScheme=STC:CS(1.0)"),
            annotations: notes("measure dimension"),
            concept_role: strings(&["M"]),
            uri: Some("m".to_owned()),
        }),
        attributes: vec![
            Attribute { related_dimensions: Some(vec![]), ..attribute("4", AttachmentLevel::Group) },
            Attribute { related_dimensions: Some(strings(&["Z", "A"])), ..attribute("3", AttachmentLevel::Series) },
            attribute("2", AttachmentLevel::DataSet),
            Attribute { related_measures: Some(strings(&["M"])), ..attribute("1", AttachmentLevel::Observation) },
        ],
        measures: ["M2", "M1"]
            .map(|id| Measure {
                id: id.to_owned(),
                concept: concept(id),
                representation: text(Facet::default()),
                enumeration_format: None,
                min_occurs: 2,
                max_occurs: None,
                usage: Usage::Mandatory,
                annotations: notes(id),
                concept_role: strings(&["R"]),
                uri: Some(id.to_owned()),
                links: links(id),
            })
            .into(),
        groups: Some(vec![group("z"), group("a"), Group { id: "empty".to_owned(), ..Group::default() }]),
        dimension_descriptor_annotations: notes("dd"),
        attribute_descriptor_annotations: notes("ad"),
        measure_descriptor_annotations: notes("md"),
        dimension_descriptor_uri: Some("dd".to_owned()),
        attribute_descriptor_uri: Some("ad".to_owned()),
        measure_descriptor_uri: Some("md".to_owned()),
        dimension_descriptor_links: links("dd"),
        attribute_descriptor_links: links("ad"),
        measure_descriptor_links: links("md"),
        evolving_structure: true,
        metadata: Some("urn:sdmx:org.sdmx.infomodel.metadatastructure.MetadataStructure=STC:M(1.0)".to_owned()),
        metadata_attributes: vec![usage("z", Some(strings(&["Z"]))), usage("a", None), usage("b", Some(vec![]))],
    }
}
