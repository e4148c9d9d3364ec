//! The checks that read what is stored: lake, bindings, references, fingerprints, availability (*edition* §6).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use catalog_rules::manifest::{ArtefactEntry, BindingCount, CANONICAL_FORM, Manifest, Root, TableFingerprint};
use catalog_rules::sdmx::model::{DataflowBinding, UrnText};

use super::CheckOptions;
use super::finding::{CheckName, FindingDetail, Findings, Profile};
use crate::duck::{STORE, Session};
use crate::edition::error::EditionError;
use crate::edition::lake::{self, LakeTable};
use crate::edition::layout::EditionFolder;
use crate::edition::structures::Structures;
use crate::edition::{Tools, coverage};
use crate::metadata_store::{Availability, MetadataStore};

/// The lake check: every referenced file is listed, those of the current snapshot are there at the size that DuckLake
/// recorded, and none is a delete file.
pub fn lake_files(
    session: &Session,
    folder: &EditionFolder,
    manifest: &Manifest,
    findings: &mut Findings,
) -> Result<(), EditionError> {
    let listed: BTreeSet<&str> = manifest.files_of(Root::Data).map(|file| file.path.as_str()).collect();
    for file in lake::referenced_files(session)? {
        let subject = format!("data/{}", file.path);
        if !file.is_relative {
            findings.differs(file.path, "the lake references", "a file elsewhere", "files under data/ only");
            continue;
        }
        if !listed.contains(file.path.as_str()) {
            findings.add(subject.clone(), FindingDetail::Unlisted);
        }
        if !file.is_current {
            continue;
        }
        if file.deletes {
            findings.add(subject.clone(), FindingDetail::DeleteFile);
        }
        match fs::metadata(folder.data().join(&file.path)) {
            Ok(found) if found.len() == file.size_bytes => {}
            Ok(found) => {
                let expected = format!("{} bytes, which DuckLake recorded", file.size_bytes);
                findings.differs(subject, "the size is", found.len().to_string(), expected);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => findings.add(subject, FindingDetail::Missing),
            Err(error) => findings.add(subject, FindingDetail::Unreadable(error.to_string())),
        }
    }
    let found = lake::spec_version(session)?;
    if manifest.ducklake_spec_version.as_deref() != Some(found.as_str()) {
        let expected = manifest.ducklake_spec_version.clone().unwrap_or_else(|| "null".to_owned());
        findings.differs("ducklake_spec_version", "the catalog records", found, expected);
    }
    Ok(())
}

/// The checks from `bindings` on. One that cannot read a store file reports that and ends the run.
#[allow(clippy::too_many_arguments, reason = "one call from one place, each argument another part of the edition")]
pub fn checks(
    tools: &Tools<'_>,
    session: &Session,
    folder: &EditionFolder,
    manifest: &Manifest,
    structures: &Structures,
    has_lake: bool,
    options: &CheckOptions<'_>,
    findings: &mut Findings,
) -> Result<(), EditionError> {
    let check = Stored { session, folder, manifest, structures, has_lake };
    type Step<'a> = fn(&Stored<'a>, &mut Findings) -> Result<(), EditionError>;
    let publish = options.at == Profile::Publish;
    let steps: [(CheckName, bool, Step<'_>); 4] = [
        (CheckName::Bindings, true, Stored::bindings),
        (CheckName::References, true, Stored::references),
        (CheckName::Fingerprints, options.fingerprints, Stored::fingerprints),
        (CheckName::Availability, publish, Stored::availability),
    ];
    for (name, runs, step) in steps {
        if !runs {
            continue;
        }
        if tools.context.cancel.is_cancelled() {
            return Err(EditionError::Cancelled);
        }
        findings.begin(name);
        let done = step(&check, findings);
        if !findings.readable("metadata.duckdb or tables.ducklake", done)? {
            return Ok(());
        }
    }
    Ok(())
}

struct Stored<'a> {
    session: &'a Session,
    folder: &'a EditionFolder,
    manifest: &'a Manifest,
    structures: &'a Structures,
    has_lake: bool,
}

impl Stored<'_> {
    /// The manifest's entry of each stored binding that it lists and whose table is there.
    fn bound(&self) -> Result<Vec<(&DataflowBinding, &BindingCount, LakeTable)>, EditionError> {
        let mut bound = Vec::new();
        let tables: BTreeSet<LakeTable> =
            if self.has_lake { lake::tables(self.session)?.into_iter().collect() } else { BTreeSet::new() };
        for binding in &self.structures.bindings {
            let listed = self.manifest.bindings.iter().find(|listed| listed.dataflow == binding.dataflow);
            let table = LakeTable::of(binding)?;
            if let (Some(listed), true) = (listed, tables.contains(&table)) {
                bound.push((binding, listed, table));
            }
        }
        Ok(bound)
    }

    fn bindings(&self, findings: &mut Findings) -> Result<(), EditionError> {
        let stored = self.structures.bindings.iter();
        let stored = stored.map(|one| (one.dataflow.clone(), self.structures.structural_version(one)));
        let listed = self.manifest.bindings.iter().map(|one| (one.dataflow.clone(), one.structural_version.clone()));
        findings.same_entries("the store binds it to", stored, listed);
        let bound = self.bound()?;
        for (_, listed, table) in &bound {
            let found = lake::count(self.session, table)?;
            if found != listed.observations {
                findings.differs(
                    listed.dataflow.clone(),
                    "the number of rows is",
                    found.to_string(),
                    listed.observations.to_string(),
                );
            }
        }
        for binding in &self.structures.bindings {
            let is_listed = self.manifest.bindings.iter().any(|listed| listed.dataflow == binding.dataflow);
            if is_listed && !bound.iter().any(|(held, _, _)| held.dataflow == binding.dataflow) {
                findings.add(format!("lake.{}", binding.table_location), FindingDetail::Missing);
            }
        }
        Ok(())
    }

    fn references(&self, findings: &mut Findings) -> Result<(), EditionError> {
        for open in MetadataStore::new(self.session.connection(), STORE).check_references()? {
            findings.add(open.subject, FindingDetail::Unresolved { role: open.role, target: open.target });
        }
        Ok(())
    }

    fn fingerprints(&self, findings: &mut Findings) -> Result<(), EditionError> {
        if self.manifest.canonical_form != CANONICAL_FORM {
            findings.differs("canonical_form", "the form is", &self.manifest.canonical_form, CANONICAL_FORM);
            return Ok(());
        }
        let fingerprints = self.structures.fingerprints()?;
        let text = |entry: &ArtefactEntry| {
            let part = if entry.partial { "partial" } else { "full" };
            (entry.urn.clone(), format!("{} {part} {}", entry.stability.as_str(), entry.fingerprint))
        };
        let stored = self.structures.entries(&fingerprints, None);
        findings.same_entries(
            "the stored artefact is",
            stored.iter().map(text),
            self.manifest.artefacts.iter().map(text),
        );
        let own = self.manifest.jobctl().unwrap_or_default();
        for (binding, listed, table) in self.bound()? {
            let dataflow = &binding.dataflow;
            let found = self.structures.structure_fingerprint(dataflow, &fingerprints);
            if found != listed.structure_fingerprint {
                findings.differs(
                    dataflow.clone(),
                    "the structure fingerprint is",
                    found.as_str(),
                    listed.structure_fingerprint.as_str(),
                );
            }
            let parts = own.fingerprints.get(dataflow).map(|parts| &parts.files).filter(|files| !files.is_empty());
            let found = match parts {
                Some(parts) => self.table_by_file(dataflow, &table, parts, findings)?,
                None => lake::fingerprint(self.session, &table)?,
            };
            if found != listed.fingerprint {
                findings.differs(
                    dataflow.clone(),
                    "the table fingerprint is",
                    found.to_string(),
                    listed.fingerprint.to_string(),
                );
            }
        }
        if let Some(recorded) = &self.manifest.content_fingerprint {
            let found = self.manifest.computed_content_fingerprint();
            if found != *recorded {
                findings.differs("content_fingerprint", "the fingerprint is", found.as_str(), recorded.as_str());
            }
        }
        Ok(())
    }

    /// The table's fingerprint as the sum of its files', each compared with the part that the manifest keeps for the
    /// next seal.
    fn table_by_file(
        &self,
        dataflow: &UrnText,
        table: &LakeTable,
        recorded: &BTreeMap<String, TableFingerprint>,
        findings: &mut Findings,
    ) -> Result<TableFingerprint, EditionError> {
        let found = lake::fingerprint_parts(self.session, self.folder.data(), table, None)?;
        let total = TableFingerprint::total(found.values().copied()).unwrap_or_default();
        let text = |(file, part): (&String, &TableFingerprint)| (format!("{dataflow} data/{file}"), part.to_string());
        findings.same_entries(
            "the part of the table fingerprint is",
            found.iter().map(text),
            recorded.iter().map(text),
        );
        Ok(total)
    }

    fn availability(&self, findings: &mut Findings) -> Result<(), EditionError> {
        let stored = MetadataStore::new(self.session.connection(), STORE).read_availability()?;
        let bound: Vec<&UrnText> = self.structures.bindings.iter().map(|binding| &binding.dataflow).collect();
        for one in stored.iter().filter(|one| !bound.contains(&&one.dataflow)) {
            findings.differs(one.dataflow.clone(), "the store has", "an availability", "none without a binding");
        }
        for (binding, _, _) in self.bound()? {
            let coverage = coverage::scan(self.session, self.structures, binding)?;
            for uncoded in coverage.uncoded {
                findings.add(
                    binding.dataflow.clone(),
                    FindingDetail::Uncoded {
                        column: uncoded.column,
                        enumeration: uncoded.enumeration,
                        values: uncoded.values,
                        more: uncoded.more,
                    },
                );
            }
            // An edition holds its bindings' availability or none at all (edition §7).
            match stored.iter().find(|one| one.dataflow == binding.dataflow) {
                Some(stored) => same_availability(stored, &coverage.availability, findings),
                None if stored.is_empty() => {}
                None => findings.add(format!("{} availability", binding.dataflow), FindingDetail::Missing),
            }
        }
        Ok(())
    }
}

fn same_availability(stored: &Availability, data: &Availability, findings: &mut Findings) {
    let dataflow = &data.dataflow;
    if stored.observations != data.observations {
        findings.differs(
            dataflow.clone(),
            "the stored number of observations is",
            stored.observations.to_string(),
            data.observations.to_string(),
        );
    }
    let by_dimension = |one: &Availability| -> BTreeMap<String, BTreeSet<String>> {
        let values = |values: &[String]| values.iter().cloned().collect();
        one.dimensions.iter().map(|dimension| (dimension.dimension.clone(), values(&dimension.values))).collect()
    };
    let (stored, data) = (by_dimension(stored), by_dimension(data));
    for dimension in stored.keys().chain(data.keys()).collect::<BTreeSet<_>>() {
        let (stored, data) = (stored.get(dimension), data.get(dimension));
        if stored != data {
            let count = |values: Option<&BTreeSet<String>>| values.map_or(0, BTreeSet::len);
            let odd = match (stored, data) {
                (Some(stored), Some(data)) => stored.symmetric_difference(data).next().cloned(),
                (Some(_), None) | (None, Some(_)) | (None, None) => None,
            };
            let odd = odd.map_or_else(String::new, |value| format!(", among them {value:?}"));
            findings.differs(
                format!("{dataflow} {dimension}"),
                "the stored values are",
                format!("{} values{odd}", count(stored)),
                format!("the data's {} values", count(data)),
            );
        }
    }
}
