//! Who refers to whom in the store, and what does not lead anywhere (*edition* §6, `references`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use catalog_rules::sdmx::closure::Graph;
use catalog_rules::sdmx::model::UrnText;
use catalog_rules::sdmx::urn::{Urn, version_sort};

use super::MetadataStore;
use super::bindings::CLASS;
use super::error::MetadataError;
use super::rows::literal;

/// A reference to what the store does not hold: a finding of the references check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unresolved {
    /// The artefact that holds the reference, by URN.
    pub subject: UrnText,
    /// What it refers to it for.
    pub role: String,
    /// What it refers to.
    pub target: UrnText,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} names {}, which the edition does not hold", self.subject, self.role, self.target)
    }
}

/// The columns beside `artefact_ref` that hold references: the table, the column of the artefact that owns the row, the
/// column of the reference, and the role that it has in `artefact_ref`.
const COLUMNS: &[(&str, &str, &str, &str)] = &[
    ("codelist_extension", "codelist_urn", "extends_urn", "extends"),
    ("concept", "scheme_urn", "codelist_urn", "core_representation"),
    ("dataflow", "urn", "dsd_urn", "structure"),
    ("dataflow_binding", "urn", "dataflow_urn", "dataflow"),
    ("dsd_component", "dsd_urn", "codelist_urn", "enumeration"),
    ("dsd_component", "dsd_urn", "concept_urn", "concept_identity"),
    ("dsd_group", "dsd_urn", "attachment_constraint_urn", "attachment_constraint"),
];

/// Classes whose items go by either name: SDMX 2.1's and 3.0's.
const ALIASES: &[(&str, &str)] = &[("Attribute", "DataAttribute"), ("Measure", "PrimaryMeasure")];

impl MetadataStore<'_> {
    /// A query for every reference: `subject`, `role`, `target`.
    fn references_sql(&self) -> String {
        let schema = self.target.qualified();
        let mut sql = format!(
            "SELECT source_urn AS subject, \"role\" AS \"role\", target_urn AS target FROM {schema}.artefact_ref"
        );
        for (table, owner, column, role) in COLUMNS {
            sql.push_str(&format!(
                " UNION SELECT \"{owner}\", '{role}', \"{column}\" FROM {schema}.\"{table}\" WHERE \"{column}\" IS NOT NULL"
            ));
        }
        sql
    }

    /// A query for the URN of every artefact and item: `urn`.
    fn names_sql(&self) -> String {
        let schema = self.target.qualified();
        let part = |class: &str, id: &str, table: &str| {
            format!(
                "SELECT 'urn:sdmx:org.sdmx.infomodel.datastructure.' || {class} || '=' || split_part(dsd_urn, '=', 2) \
                 || '.' || {id} FROM {schema}.{table}"
            )
        };
        [
            format!("SELECT urn FROM {schema}.artefact WHERE artefact_type <> {}", literal(CLASS)),
            format!("SELECT agency_urn FROM {schema}.agency"),
            format!("SELECT code_urn FROM {schema}.code"),
            format!("SELECT concept_urn FROM {schema}.concept"),
            part("component_type", "component_id", "dsd_component"),
            part("'GroupDimensionDescriptor'", "group_id", "dsd_group"),
        ]
        .join(" UNION ALL ")
    }

    /// The artefacts of the store and their references, for the closures of its dataflows.
    ///
    /// # Errors
    /// [`MetadataError::DuckDb`].
    pub fn graph(&self) -> Result<Graph, MetadataError> {
        let held = self.urns()?;
        let edges = self.unresolved_rows(&self.references_sql())?;
        Ok(Graph::new(
            held.iter().map(String::as_str),
            edges.iter().map(|edge| (edge.subject.as_str(), edge.target.as_str())),
        ))
    }

    /// The references check: every reference that names no artefact and no item of the store, by artefact, role and
    /// target. Empty when all is well.
    ///
    /// A URN without a version names the latest version held, and SDMX 2.1's `Attribute` and `PrimaryMeasure` match
    /// 3.0's `DataAttribute` and `Measure`.
    ///
    /// # Errors
    /// [`MetadataError::DuckDb`].
    pub fn check_references(&self) -> Result<Vec<Unresolved>, MetadataError> {
        let sql = format!(
            "WITH refs AS ({}), names(urn) AS ({}) SELECT subject, \"role\", target FROM refs \
             WHERE NOT EXISTS (SELECT 1 FROM names WHERE names.urn = refs.target) ORDER BY ALL",
            self.references_sql(),
            self.names_sql()
        );
        let mut open = self.unresolved_rows(&sql)?;
        if open.is_empty() {
            return Ok(open);
        }
        let latest = latest_versions(&self.urns()?);
        let spellings: BTreeMap<&str, BTreeSet<UrnText>> =
            open.iter().map(|reference| (reference.target.as_str(), spellings(&reference.target, &latest))).collect();
        let held = self.held(spellings.values().flatten())?;
        let resolved: BTreeSet<UrnText> = spellings
            .iter()
            .filter(|(_, spellings)| spellings.iter().any(|spelling| held.contains(spelling)))
            .map(|(target, _)| (*target).to_owned())
            .collect();
        open.retain(|reference| !resolved.contains(&reference.target));
        Ok(open)
    }

    fn unresolved_rows(&self, sql: &str) -> Result<Vec<Unresolved>, MetadataError> {
        let failed = || MetadataError::duckdb("read the references");
        let mut statement = self.target.conn.prepare(sql).map_err(failed())?;
        let rows = statement
            .query_map([], |row| Ok(Unresolved { subject: row.get(0)?, role: row.get(1)?, target: row.get(2)? }))
            .map_err(failed())?;
        rows.collect::<Result<_, _>>().map_err(failed())
    }

    /// Those of `urns` that name an artefact or an item of the store.
    fn held<'a>(&self, urns: impl Iterator<Item = &'a UrnText>) -> Result<BTreeSet<UrnText>, MetadataError> {
        let list = urns.map(|urn| format!("({})", literal(urn))).collect::<Vec<_>>().join(", ");
        if list.is_empty() {
            return Ok(BTreeSet::new());
        }
        let failed = || MetadataError::duckdb("look up references");
        let sql = format!("SELECT urn FROM (VALUES {list}) AS asked(urn) WHERE urn IN ({})", self.names_sql());
        let mut statement = self.target.conn.prepare(&sql).map_err(failed())?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(failed())?;
        rows.collect::<Result<_, _>>().map_err(failed())
    }
}

/// The latest version of each artefact, by its URN without a version.
fn latest_versions(held: &BTreeSet<UrnText>) -> BTreeMap<UrnText, String> {
    let mut latest: BTreeMap<UrnText, String> = BTreeMap::new();
    for urn in held {
        let Ok(mut urn) = urn.parse::<Urn>() else { continue };
        let Some(version) = urn.version.take() else { continue };
        let found = latest.entry(urn.to_string()).or_insert_with(|| version.clone());
        if version_sort(found) < version_sort(&version) {
            *found = version;
        }
    }
    latest
}

/// The other ways in which the store may hold what `target` names.
fn spellings(target: &str, latest: &BTreeMap<UrnText, String>) -> BTreeSet<UrnText> {
    let Ok(mut urn) = target.parse::<Urn>() else { return BTreeSet::new() };
    if urn.version.is_none() {
        urn.version = urn.holder().and_then(|holder| latest.get(&holder.to_string()).cloned());
    }
    let mut spellings = BTreeSet::from([urn.to_string()]);
    for (one, other) in ALIASES {
        for (class, alias) in [(one, other), (other, one)] {
            if urn.class == *class {
                spellings.insert(Urn { class: (*alias).to_owned(), ..urn.clone() }.to_string());
            }
        }
    }
    spellings
}
