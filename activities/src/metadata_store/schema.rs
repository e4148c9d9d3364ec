//! The tables of the store, and the two forms in which they exist.

use std::fmt::Write as _;

/// In which form the tables are created (*edition* §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// While an edition is built: with every primary key, so that a row written twice is refused.
    Keyed,
    /// Once it is sealed: without the key of `artefact_ref`, which is as large as its rows and enforces nothing in a
    /// file that is never written.
    Sealed,
}

/// A column: its name and its declaration.
pub(super) type Column = (&'static str, &'static str);

/// To which artefact a row belongs.
pub(super) enum Owner {
    /// To none: the row stays when artefacts go.
    Nobody,
    /// To the artefact whose URN this column holds.
    Column(&'static str),
    /// To the owner of the row of another table, which has the value of `column` in its column `key`.
    Through { column: &'static str, table: &'static str, key: &'static str, owner: &'static str },
}

pub(super) struct Table {
    pub(super) name: &'static str,
    /// The columns in order, in groups so that the many columns of a format are listed once.
    columns: &'static [&'static [Column]],
    pub(super) key: &'static [&'static str],
    pub(super) owner: Owner,
    /// How the rows lie in a compacted store: by owner, then in the order in which they are read.
    pub(super) order: &'static [&'static str],
}

impl Table {
    pub(super) fn columns(&self) -> impl Iterator<Item = Column> + '_ {
        self.columns.iter().flat_map(|group| group.iter().copied())
    }

    /// Whether a sequence gives the ids of its rows.
    pub(super) fn has_sequence(&self) -> bool {
        SEQUENCES.iter().any(|(_, table)| table.name == self.name)
    }

    /// The names of the columns, quoted, for a SELECT.
    pub(super) fn column_list(&self) -> String {
        self.columns().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }
}

pub(super) const VARCHAR: &str = "VARCHAR";
const TEXT: &str = "VARCHAR NOT NULL";
const TEXTS: &str = "VARCHAR[]";
pub(super) const LANGUAGES: &str = "MAP(VARCHAR, VARCHAR)";
pub(super) const SENTINELS: &str =
    "STRUCT(\"value\" VARCHAR, \"name\" MAP(VARCHAR, VARCHAR), description MAP(VARCHAR, VARCHAR))[]";
const PLACE: &str = "INTEGER NOT NULL";
const FALSE: &str = "BOOLEAN NOT NULL DEFAULT false";
const DEPTH: &str = "SMALLINT NOT NULL DEFAULT 0";

const FACET: &[Column] = &[
    ("text_type", VARCHAR),
    ("min_length", "INTEGER"),
    ("max_length", "INTEGER"),
    ("min_value", "DOUBLE"),
    ("max_value", "DOUBLE"),
    ("decimals", "SMALLINT"),
    ("pattern", VARCHAR),
    ("is_sequence", "BOOLEAN"),
    ("start_value", "DOUBLE"),
    ("end_value", "DOUBLE"),
    ("is_multilingual", "BOOLEAN"),
    ("interval", "DOUBLE"),
    ("time_interval", VARCHAR),
    ("start_time", VARCHAR),
    ("end_time", VARCHAR),
];

const ENUM_FACET: &[Column] = &[
    ("enum_text_type", VARCHAR),
    ("enum_min_length", "INTEGER"),
    ("enum_max_length", "INTEGER"),
    ("enum_min_value", "DOUBLE"),
    ("enum_max_value", "DOUBLE"),
    ("enum_decimals", "SMALLINT"),
    ("enum_pattern", VARCHAR),
    ("enum_is_sequence", "BOOLEAN"),
    ("enum_start_value", "DOUBLE"),
    ("enum_end_value", "DOUBLE"),
    ("enum_is_multilingual", "BOOLEAN"),
    ("enum_interval", "DOUBLE"),
    ("enum_time_interval", VARCHAR),
    ("enum_start_time", VARCHAR),
    ("enum_end_time", VARCHAR),
];

pub(super) const META: Table = Table {
    name: "_meta",
    columns: &[&[("key", TEXT), ("value", TEXT)]],
    key: &["key"],
    owner: Owner::Nobody,
    order: &["key"],
};

pub(super) const ARTEFACT: Table = Table {
    name: "artefact",
    columns: &[&[
        ("urn", TEXT),
        ("artefact_type", TEXT),
        ("agency_id", TEXT),
        ("resource_id", TEXT),
        ("version", "VARCHAR NOT NULL DEFAULT '1.0'"),
        (
            "version_sort",
            "VARCHAR NOT NULL DEFAULT \
             '000000001.000000000.000000000.000000000.000000000.000000000.000000000.000000000~'",
        ),
        ("is_final", FALSE),
        ("legacy_is_final", "BOOLEAN"),
        ("is_external_ref", FALSE),
        ("service_url", VARCHAR),
        ("structure_url", VARCHAR),
        ("is_partial", FALSE),
        ("is_partial_language", FALSE),
        ("valid_from", "TIMESTAMP"),
        ("valid_to", "TIMESTAMP"),
        ("source_registry", VARCHAR),
        ("fetched_at", "TIMESTAMP"),
        ("uri", VARCHAR),
    ]],
    key: &["urn"],
    owner: Owner::Column("urn"),
    order: &["urn"],
};

pub(super) const ARTEFACT_REF: Table = Table {
    name: "artefact_ref",
    columns: &[&[("source_urn", TEXT), ("target_urn", TEXT), ("role", TEXT), ("ordinal", "INTEGER")]],
    key: &["source_urn", "target_urn", "role"],
    owner: Owner::Column("source_urn"),
    order: &["source_urn", "target_urn", "role"],
};

pub(super) const LOCALIZED_TEXT: Table = Table {
    name: "localized_text",
    columns: &[&[("owner_urn", TEXT), ("field", TEXT), ("lang", TEXT), ("text", TEXT)]],
    key: &["owner_urn", "field", "lang"],
    owner: Owner::Column("owner_urn"),
    order: &["owner_urn", "field", "lang"],
};

pub(super) const ANNOTATION: Table = Table {
    name: "annotation",
    columns: &[&[
        ("id", "BIGINT NOT NULL DEFAULT nextval('annotation_id_seq')"),
        ("owner_urn", TEXT),
        ("owner_artefact_urn", TEXT),
        ("ordinal", PLACE),
        ("annotation_id", VARCHAR),
        ("title", VARCHAR),
        ("annotation_type", VARCHAR),
        ("value", VARCHAR),
    ]],
    key: &["id"],
    owner: Owner::Column("owner_artefact_urn"),
    order: &["owner_artefact_urn", "owner_urn", "ordinal"],
};

const BY_ANNOTATION: Owner =
    Owner::Through { column: "annotation_id", table: "annotation", key: "id", owner: "owner_artefact_urn" };

pub(super) const ANNOTATION_TEXT: Table = Table {
    name: "annotation_text",
    columns: &[&[("annotation_id", "BIGINT NOT NULL"), ("lang", TEXT), ("text", TEXT)]],
    key: &["annotation_id", "lang"],
    owner: BY_ANNOTATION,
    order: &["annotation_id", "lang"],
};

pub(super) const ANNOTATION_URL: Table = Table {
    name: "annotation_url",
    columns: &[&[
        ("annotation_id", "BIGINT NOT NULL"),
        ("position", PLACE),
        ("url", TEXT),
        ("lang", VARCHAR),
        ("link_urn", VARCHAR),
        ("link_type", VARCHAR),
    ]],
    key: &["annotation_id", "position"],
    owner: BY_ANNOTATION,
    order: &["annotation_id", "position"],
};

pub(super) const LINK: Table = Table {
    name: "link",
    columns: &[&[
        ("owner_urn", TEXT),
        ("owner_artefact_urn", TEXT),
        ("position", PLACE),
        ("rel", TEXT),
        ("url", TEXT),
        ("urn", VARCHAR),
        ("link_type", VARCHAR),
        ("hreflang", VARCHAR),
    ]],
    key: &["owner_urn", "position"],
    owner: Owner::Column("owner_artefact_urn"),
    order: &["owner_artefact_urn", "owner_urn", "position"],
};

pub(super) const AGENCY: Table = Table {
    name: "agency",
    columns: &[&[
        ("agency_urn", TEXT),
        ("scheme_urn", TEXT),
        ("agency_id", TEXT),
        ("name", LANGUAGES),
        ("description", LANGUAGES),
        ("uri", VARCHAR),
        ("position", "INTEGER"),
    ]],
    key: &["agency_urn"],
    owner: Owner::Column("scheme_urn"),
    order: &["scheme_urn", "position"],
};

pub(super) const ORGANISATION_CONTACT: Table = Table {
    name: "organisation_contact",
    columns: &[&[
        ("id", "BIGINT NOT NULL DEFAULT nextval('organisation_contact_id_seq')"),
        ("owner_urn", TEXT),
        ("ordinal", PLACE),
        ("contact_name", LANGUAGES),
        ("department", LANGUAGES),
        ("role", LANGUAGES),
        ("phones", TEXTS),
        ("faxes", TEXTS),
        ("x400s", TEXTS),
        ("uris", TEXTS),
        ("emails", TEXTS),
        ("contact_id", VARCHAR),
    ]],
    key: &["id"],
    owner: Owner::Through { column: "owner_urn", table: "agency", key: "agency_urn", owner: "scheme_urn" },
    order: &["owner_urn", "ordinal"],
};

pub(super) const CODE: Table = Table {
    name: "code",
    columns: &[&[
        ("code_urn", TEXT),
        ("codelist_urn", TEXT),
        ("code_id", TEXT),
        ("parent_id", VARCHAR),
        ("position", "INTEGER"),
        ("name", LANGUAGES),
        ("description", LANGUAGES),
        ("depth", DEPTH),
        ("ancestor_ids", TEXTS),
        ("uri", VARCHAR),
        ("geo_value", VARCHAR),
        ("geo_cell", VARCHAR),
    ]],
    key: &["code_urn"],
    owner: Owner::Column("codelist_urn"),
    order: &["codelist_urn", "position"],
};

pub(super) const CODELIST_EXTENSION: Table = Table {
    name: "codelist_extension",
    columns: &[&[
        ("codelist_urn", TEXT),
        ("position", "SMALLINT NOT NULL"),
        ("extends_urn", TEXT),
        ("prefix", VARCHAR),
        ("selection_mode", VARCHAR),
    ]],
    key: &["codelist_urn", "position"],
    owner: Owner::Column("codelist_urn"),
    order: &["codelist_urn", "position"],
};

pub(super) const CODE_SELECTION_MEMBER: Table = Table {
    name: "code_selection_member",
    columns: &[&[
        ("codelist_urn", TEXT),
        ("position", "SMALLINT NOT NULL"),
        ("member_idx", "SMALLINT NOT NULL"),
        ("value", TEXT),
        ("cascade", VARCHAR),
    ]],
    key: &["codelist_urn", "position", "member_idx"],
    owner: Owner::Column("codelist_urn"),
    order: &["codelist_urn", "position", "member_idx"],
};

pub(super) const CONCEPT: Table = Table {
    name: "concept",
    columns: &[
        &[
            ("concept_urn", TEXT),
            ("scheme_urn", TEXT),
            ("concept_id", TEXT),
            ("parent_id", VARCHAR),
            ("position", "INTEGER"),
            ("name", LANGUAGES),
            ("description", LANGUAGES),
            ("depth", DEPTH),
            ("ancestor_ids", TEXTS),
            ("uri", VARCHAR),
            ("repr_kind", VARCHAR),
            ("codelist_urn", VARCHAR),
        ],
        FACET,
        &[("sentinel_values", SENTINELS)],
        ENUM_FACET,
        &[
            ("iso_agency", VARCHAR),
            ("iso_concept_scheme_id", VARCHAR),
            ("iso_concept_id", VARCHAR),
            ("min_occurs", "INTEGER DEFAULT 1"),
            ("max_occurs", "INTEGER DEFAULT 1"),
            ("enum_sentinel_values", SENTINELS),
        ],
    ],
    key: &["concept_urn"],
    owner: Owner::Column("scheme_urn"),
    order: &["scheme_urn", "position"],
};

pub(super) const DATA_STRUCTURE: Table = Table {
    name: "data_structure",
    columns: &[&[
        ("urn", TEXT),
        ("dimension_descriptor_uri", VARCHAR),
        ("attribute_descriptor_uri", VARCHAR),
        ("measure_descriptor_uri", VARCHAR),
        ("evolving_structure", FALSE),
        ("has_groups", FALSE),
    ]],
    key: &["urn"],
    owner: Owner::Column("urn"),
    order: &["urn"],
};

pub(super) const DSD_COMPONENT: Table = Table {
    name: "dsd_component",
    columns: &[
        &[
            ("dsd_urn", TEXT),
            ("component_id", TEXT),
            ("component_type", TEXT),
            ("position", "INTEGER"),
            ("concept_urn", VARCHAR),
            ("repr_kind", VARCHAR),
            ("codelist_urn", VARCHAR),
        ],
        FACET,
        ENUM_FACET,
        &[
            ("usage_status", VARCHAR),
            ("attachment_level", VARCHAR),
            ("attachment_group", VARCHAR),
            ("related_dimensions", TEXTS),
            ("measure_usage", VARCHAR),
            ("concept_roles", TEXTS),
            ("uri", VARCHAR),
            ("optional_dimensions", TEXTS),
            ("related_measures", TEXTS),
            ("min_occurs", "INTEGER DEFAULT 1"),
            ("max_occurs", "INTEGER DEFAULT 1"),
            ("sentinel_values", SENTINELS),
            ("attachment_groups", TEXTS),
            ("enum_sentinel_values", SENTINELS),
        ],
    ],
    key: &["dsd_urn", "component_id"],
    owner: Owner::Column("dsd_urn"),
    order: &["dsd_urn", "position"],
};

pub(super) const DSD_GROUP: Table = Table {
    name: "dsd_group",
    columns: &[&[
        ("dsd_urn", TEXT),
        ("group_id", TEXT),
        ("uri", VARCHAR),
        ("attachment_constraint_urn", VARCHAR),
        ("position", "INTEGER"),
    ]],
    key: &["dsd_urn", "group_id"],
    owner: Owner::Column("dsd_urn"),
    order: &["dsd_urn", "position"],
};

pub(super) const GROUP_DIMENSION: Table = Table {
    name: "group_dimension",
    columns: &[&[("dsd_urn", TEXT), ("group_id", TEXT), ("dimension_id", TEXT), ("position", "INTEGER")]],
    key: &["dsd_urn", "group_id", "dimension_id"],
    owner: Owner::Column("dsd_urn"),
    order: &["dsd_urn", "group_id", "position"],
};

pub(super) const DSD_METADATA_ATTRIBUTE: Table = Table {
    name: "dsd_metadata_attribute",
    columns: &[&[
        ("dsd_urn", TEXT),
        ("attribute_id", TEXT),
        ("position", "INTEGER"),
        ("attachment_level", VARCHAR),
        ("attachment_group", VARCHAR),
        ("related_dimensions", TEXTS),
        ("optional_dimensions", TEXTS),
        ("uri", VARCHAR),
    ]],
    key: &["dsd_urn", "attribute_id"],
    owner: Owner::Column("dsd_urn"),
    order: &["dsd_urn", "position"],
};

pub(super) const DATAFLOW: Table = Table {
    name: "dataflow",
    columns: &[&[("urn", TEXT), ("dsd_urn", VARCHAR), ("dimension_constraint", TEXTS)]],
    key: &["urn"],
    owner: Owner::Column("urn"),
    order: &["urn"],
};

pub(super) const DATAFLOW_BINDING: Table = Table {
    name: "dataflow_binding",
    columns: &[&[
        ("urn", TEXT),
        ("dataflow_urn", TEXT),
        ("table_location", TEXT),
        ("database_role", "VARCHAR NOT NULL DEFAULT 'lake'"),
        ("dimension_column_map", LANGUAGES),
        ("measure_column_map", LANGUAGES),
        ("attribute_column_map", LANGUAGES),
        ("structural_version", TEXT),
        ("binding_source_registry", TEXT),
        ("materialized_at", "TIMESTAMP NOT NULL"),
        ("bound_at", "TIMESTAMP NOT NULL"),
        ("series_attributes_location", VARCHAR),
    ]],
    key: &["urn"],
    owner: Owner::Column("urn"),
    order: &["dataflow_urn"],
};

pub(super) const AVAILABILITY: Table = Table {
    name: "availability",
    columns: &[&[("dataflow_urn", TEXT), ("observations", "BIGINT NOT NULL")]],
    key: &["dataflow_urn"],
    owner: Owner::Nobody,
    order: &["dataflow_urn"],
};

pub(super) const AVAILABILITY_VALUE: Table = Table {
    name: "availability_value",
    columns: &[&[
        ("dataflow_urn", TEXT),
        ("dimension_position", PLACE),
        ("dimension_id", TEXT),
        ("position", PLACE),
        ("value", TEXT),
    ]],
    key: &["dataflow_urn", "dimension_position", "position"],
    // Availability goes with its binding, and stays when its dataflow is written anew.
    owner: Owner::Nobody,
    order: &["dataflow_urn", "dimension_position", "position"],
};

/// Every table. One whose rows are owned through another stands before it, so that its rows can still be found when
/// they are deleted.
pub(super) const TABLES: &[&Table] = &[
    &META,
    &ANNOTATION_TEXT,
    &ANNOTATION_URL,
    &ANNOTATION,
    &ORGANISATION_CONTACT,
    &AGENCY,
    &CODE,
    &CODELIST_EXTENSION,
    &CODE_SELECTION_MEMBER,
    &CONCEPT,
    &DSD_COMPONENT,
    &DSD_GROUP,
    &GROUP_DIMENSION,
    &DSD_METADATA_ATTRIBUTE,
    &DATA_STRUCTURE,
    &DATAFLOW,
    &DATAFLOW_BINDING,
    &AVAILABILITY_VALUE,
    &AVAILABILITY,
    &LINK,
    &LOCALIZED_TEXT,
    &ARTEFACT_REF,
    &ARTEFACT,
];

/// The sequences, and whose ids they give.
pub(super) const SEQUENCES: &[(&str, &Table)] =
    &[("annotation_id_seq", &ANNOTATION), ("organisation_contact_id_seq", &ORGANISATION_CONTACT)];

/// The statements that create the schema `schema` (qualified and quoted) in `form`. `starts` gives the next value of
/// each sequence of [`SEQUENCES`].
pub(super) fn ddl(schema: &str, form: Form, starts: &[i64]) -> String {
    let mut sql = format!("CREATE SCHEMA {schema};\n");
    // Writing into a String cannot fail.
    for ((sequence, _), start) in SEQUENCES.iter().zip(starts) {
        let _ = writeln!(sql, "CREATE SEQUENCE {schema}.{sequence} START {start};");
    }
    for table in TABLES {
        let mut lines: Vec<String> = table.columns().map(|(name, declared)| format!("\"{name}\" {declared}")).collect();
        let keyed = match form {
            Form::Keyed => true,
            Form::Sealed => table.name != ARTEFACT_REF.name,
        };
        if keyed {
            lines.push(format!("PRIMARY KEY ({})", quoted(table.key)));
        }
        let _ = writeln!(sql, "CREATE TABLE {schema}.\"{}\" ({});", table.name, lines.join(", "));
    }
    sql
}

pub(super) fn quoted(columns: &[&str]) -> String {
    columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
