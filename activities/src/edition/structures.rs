//! What a manifest says of the artefacts, computed from what is stored (*edition* §9).

use std::collections::{BTreeMap, BTreeSet};

use catalog_rules::ids::Sha256Hex;
use catalog_rules::manifest::{ArtefactEntry, Manifest, Stability};
use catalog_rules::sdmx::closure::Graph;
use catalog_rules::sdmx::fingerprint::{artefact_fingerprint, structure_fingerprint};
use catalog_rules::sdmx::model::{
    Artefact, Codelist, Concept, DataStructure, DataflowBinding, Representation, UrnText,
};
use catalog_rules::sdmx::urn::Urn;

use super::error::EditionError;
use crate::duck::{STORE, Session};
use crate::metadata_store::MetadataStore;

/// The artefacts and bindings of a store.
#[derive(Debug)]
pub struct Structures {
    pub artefacts: BTreeMap<UrnText, Artefact>,
    pub bindings: Vec<DataflowBinding>,
    graph: Graph,
}

impl Structures {
    /// Reads the store that is attached as [`STORE`].
    pub fn read(session: &Session) -> Result<Self, EditionError> {
        let store = MetadataStore::new(session.connection(), STORE);
        let artefacts = store.read_artefacts()?.into_iter().map(|artefact| (artefact.urn(), artefact)).collect();
        Ok(Self { artefacts, bindings: store.read_bindings()?, graph: store.graph()? })
    }

    /// The artefacts and bindings of a build, before they are stored.
    pub fn of(artefacts: &[Artefact], bindings: Vec<DataflowBinding>) -> Self {
        let artefacts = artefacts.iter().map(|artefact| (artefact.urn(), artefact.clone())).collect();
        Self { artefacts, bindings, graph: Graph::default() }
    }

    /// Each artefact's fingerprint, by URN.
    pub fn fingerprints(&self) -> Result<BTreeMap<UrnText, Sha256Hex>, EditionError> {
        self.artefacts
            .iter()
            .map(|(urn, artefact)| {
                let fingerprint = artefact_fingerprint(artefact)
                    .map_err(|source| EditionError::Canonical { urn: urn.clone(), source })?;
                Ok((urn.clone(), fingerprint))
            })
            .collect()
    }

    /// The manifest's entries, by URN. A partial keeps the `partial_of` that `previous` records for it.
    pub fn entries(
        &self,
        fingerprints: &BTreeMap<UrnText, Sha256Hex>,
        previous: Option<&Manifest>,
    ) -> Vec<ArtefactEntry> {
        let cut_from: BTreeMap<&UrnText, &Sha256Hex> = previous
            .into_iter()
            .flat_map(|manifest| &manifest.artefacts)
            .filter_map(|entry| Some((&entry.urn, entry.partial_of.as_ref()?)))
            .collect();
        let entry = |(urn, fingerprint): (&UrnText, &Sha256Hex)| {
            let artefact = self.artefacts.get(urn)?;
            let partial = artefact.is_partial();
            Some(ArtefactEntry {
                urn: urn.clone(),
                stability: Stability::of(&artefact.common().version),
                partial,
                fingerprint: fingerprint.clone(),
                partial_of: cut_from.get(urn).filter(|_| partial).map(|full| (*full).clone()),
            })
        };
        fingerprints.iter().filter_map(entry).collect()
    }

    /// The structure fingerprint of a bound dataflow.
    pub fn structure_fingerprint(&self, dataflow: &str, fingerprints: &BTreeMap<UrnText, Sha256Hex>) -> Sha256Hex {
        let closure = self.graph.closure(dataflow);
        let held = fingerprints.iter().filter(|(urn, _)| closure.contains(*urn));
        structure_fingerprint(&held.map(|(urn, fingerprint)| (urn.clone(), fingerprint.clone())).collect())
    }

    /// The URN of the data structure that a binding was written against, at its version.
    pub fn structural_version(&self, binding: &DataflowBinding) -> UrnText {
        if binding.structural_version.starts_with("urn:") {
            return binding.structural_version.clone();
        }
        format!("urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure={}", binding.structural_version)
    }

    /// The data structure of a binding, when the store holds it.
    pub fn data_structure(&self, binding: &DataflowBinding) -> Option<&DataStructure> {
        let Artefact::DataStructure(structure) = self.artefacts.get(&self.structural_version(binding))? else {
            return None;
        };
        Some(structure)
    }

    /// The columns of a binding that a list enumerates which the store holds: column and list.
    pub fn coded_columns(&self, binding: &DataflowBinding) -> Vec<(String, UrnText, &Codelist)> {
        let Some(structure) = self.data_structure(binding) else { return Vec::new() };
        let dimensions = structure.dimensions.iter().map(|one| (&one.id, &one.representation, &one.concept));
        let attributes = structure.attributes.iter().map(|one| (&one.id, &one.representation, &one.concept));
        let measures = structure.measures.iter().map(|one| (&one.id, &one.representation, &one.concept));
        let columns = [
            (dimensions.collect::<Vec<_>>(), &binding.dimension_columns),
            (attributes.collect(), &binding.attribute_columns),
            (measures.collect(), &binding.measure_columns),
        ];
        let mut coded = Vec::new();
        for (components, columns) in columns {
            for (id, representation, concept) in components {
                let representation = representation.as_ref().or_else(|| self.core_representation(concept.as_ref()?));
                let Some(Representation::Enumerated(urn)) = representation else { continue };
                if let (Some(column), Some(Artefact::Codelist(list))) = (columns.get(id), self.artefacts.get(urn)) {
                    coded.push((column.clone(), urn.clone(), list));
                }
            }
        }
        coded
    }

    /// What a concept says of its values, when the store holds it.
    fn core_representation(&self, concept: &str) -> Option<&Representation> {
        let urn: Urn = concept.parse().ok()?;
        let Artefact::ConceptScheme(scheme) = self.artefacts.get(&urn.holder()?.to_string())? else { return None };
        let id = urn.item.as_deref()?;
        scheme.concepts.iter().find(|one: &&Concept| one.id == id)?.core_representation.as_ref()
    }

    /// The dimensions of a binding and their columns, in the data structure's order, time last. A store without the
    /// data structure gives them by id.
    pub fn dimension_columns(&self, binding: &DataflowBinding) -> Vec<(String, String)> {
        let mut order: Vec<&str> = Vec::new();
        if let Some(structure) = self.data_structure(binding) {
            order.extend(structure.dimensions.iter().map(|dimension| dimension.id.as_str()));
            order.extend(structure.time_dimension.iter().map(|dimension| dimension.id.as_str()));
        }
        let known: BTreeSet<&str> = order.iter().copied().collect();
        order.extend(binding.dimension_columns.keys().map(String::as_str).filter(|id| !known.contains(id)));
        let column = |id: &str| Some((id.to_owned(), binding.dimension_columns.get(id)?.clone()));
        order.into_iter().filter_map(column).collect()
    }
}
