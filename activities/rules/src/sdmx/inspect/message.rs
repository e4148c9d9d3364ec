//! What is wrong between the artefacts of one message.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::items::{List, items};
use crate::sdmx::finding::{Finding, FindingCode, Findings};
use crate::sdmx::model::{
    Artefact, CascadeSelection, ComponentValueSet, DataConstraint, DataStructure, Representation, UrnText,
};
use crate::sdmx::references::references;
use crate::sdmx::urn::{Urn, VersionKind};

/// The findings between artefacts of one message: double artefacts, references to what the message does not hold,
/// constraints of components and codes that the structure does not have, codes of hierarchies that a list in the
/// message does not have.
///
/// A reference to an artefact that is not in the message is told once for each artefact that refers, with how many of
/// its references name it.
#[must_use]
pub fn message(artefacts: &[Artefact]) -> Vec<Finding> {
    let mut found = Findings::default();
    let mut held = HashMap::new();
    for artefact in artefacts {
        let urn = artefact.urn();
        if held.contains_key(&urn) {
            found.add(Finding {
                code: FindingCode::DuplicateArtefact,
                urn: urn.clone(),
                place: String::new(),
                message: "the message holds this artefact more than once".to_owned(),
            });
        }
        held.entry(urn).or_insert(artefact);
    }
    let message = Message { held, items: BTreeMap::new() };
    let message = message.with_items_referred_to(artefacts);
    for artefact in artefacts {
        message.references(artefact, &mut found);
        if let Artefact::DataConstraint(constraint) = artefact {
            message.constraint(artefact, constraint, &mut found);
        }
    }
    found.into_vec()
}

struct Message<'a> {
    held: HashMap<UrnText, &'a Artefact>,
    /// The paths of the items of those artefacts that a reference names an item of.
    items: BTreeMap<UrnText, HashSet<String>>,
}

/// What becomes of a reference.
enum Target<'a> {
    Held,
    Stub,
    NoArtefact(UrnText),
    NoItem(&'a Artefact),
    /// Not a URN, or with a wildcard.
    Open,
}

impl<'a> Message<'a> {
    fn with_items_referred_to(mut self, artefacts: &'a [Artefact]) -> Self {
        let holders: BTreeSet<UrnText> = artefacts
            .iter()
            .flat_map(references)
            .filter_map(|reference| reference.target.parse::<Urn>().ok())
            .filter(|urn| urn.item.is_some())
            .filter_map(|urn| urn.holder().map(|holder| holder.to_string()))
            .collect();
        for holder in holders {
            let Some(artefact) = self.held.get(&holder) else { continue };
            let mut paths = HashSet::new();
            for list in items(artefact) {
                collect("", &list, &mut paths);
            }
            self.items.insert(holder, paths);
        }
        self
    }

    fn target(&self, target: &str) -> Target<'a> {
        let Ok(urn) = target.parse::<Urn>() else { return Target::Open };
        let wild = |part: &str| part.contains('*') || part.contains('%');
        let version = urn.version.as_deref();
        if version.is_some_and(|version| VersionKind::of(version) == Some(VersionKind::Wildcard))
            || [&urn.agency, &urn.id].into_iter().any(|part| wild(part))
        {
            return Target::Open;
        }
        // An artefact of a class that is not known here, or a latest version, may be anywhere.
        let (Some(holder), Some(_)) = (urn.holder(), version) else { return Target::Open };
        let holder = holder.to_string();
        let Some(artefact) = self.held.get(&holder).copied() else { return Target::NoArtefact(holder) };
        if artefact.common().is_external_reference {
            return Target::Stub;
        }
        match (&urn.item, self.items.get(&holder)) {
            (Some(item), Some(items)) if !items.contains(item) && !is_extended(artefact) => Target::NoItem(artefact),
            (Some(_) | None, _) => Target::Held,
        }
    }

    fn references(&self, artefact: &Artefact, found: &mut Findings) {
        let mut missing: BTreeMap<UrnText, (u64, String)> = BTreeMap::new();
        let mut add = |code, place: String, message| {
            found.add(Finding { code, urn: artefact.urn(), place, message });
        };
        for reference in references(artefact) {
            let role = reference.role.as_ref();
            let place = reference.ordinal.map_or_else(|| role.to_owned(), |ordinal| format!("{role}[{ordinal}]"));
            match self.target(&reference.target) {
                Target::Held | Target::Stub => {}
                Target::Open => {
                    if reference.target.parse::<Urn>().is_err() {
                        let message = format!("{:?} is no URN; kept as it is", reference.target);
                        add(FindingCode::BadReference, place, message);
                    }
                }
                Target::NoArtefact(holder) => {
                    missing.entry(holder).or_insert((0, place)).0 += 1;
                }
                Target::NoItem(holder) => add(
                    FindingCode::Unresolved,
                    place,
                    format!("{} names an item that the {} does not have", reference.target, holder.class()),
                ),
            }
        }
        for (holder, (count, place)) in missing {
            let times = if count == 1 { String::new() } else { format!(" ({count} references)") };
            let message = format!("{holder} is not in the message{times}");
            found.add(Finding { code: FindingCode::Unresolved, urn: artefact.urn(), place, message });
        }
    }

    /// The data structures that a constraint is attached to, as far as the message holds them.
    fn structures(&self, constraint: &DataConstraint) -> Vec<&'a DataStructure> {
        let attachment = &constraint.attachment;
        let mut flows: Vec<&UrnText> = attachment.dataflows.iter().collect();
        for agreement in &attachment.provision_agreements {
            if let Some(Artefact::ProvisionAgreement(agreement)) = self.held.get(agreement) {
                flows.extend(&agreement.dataflow);
            }
        }
        let mut structures: Vec<&UrnText> = attachment.data_structures.iter().collect();
        for flow in flows {
            if let Some(Artefact::Dataflow(flow)) = self.held.get(flow) {
                structures.extend(&flow.structure);
            }
        }
        let held = structures.into_iter().filter_map(|urn| self.held.get(urn).copied());
        let full = held.filter(|artefact| !artefact.common().is_external_reference);
        let mut found = Vec::new();
        for artefact in full {
            if let Artefact::DataStructure(structure) = artefact {
                found.push(&**structure);
            }
        }
        found
    }

    fn constraint(&self, artefact: &Artefact, constraint: &DataConstraint, found: &mut Findings) {
        for structure in self.structures(constraint) {
            let components = components(structure);
            let mut told = BTreeSet::new();
            let mut check = |place: String, id: &str, values: &mut dyn Iterator<Item = &str>| {
                let unknown =
                    |code, message: String| Finding { code, urn: artefact.urn(), place: place.clone(), message };
                // A nested id is a metadata attribute's; the structure that it belongs to is another one.
                let Some(representation) = components.get(id) else {
                    if !structure.metadata_attributes.iter().any(|usage| usage.id == id) && told.insert(id.to_owned()) {
                        let message = format!("{id:?} is no component of {}", structure.common.id);
                        found.add(unknown(FindingCode::UnknownComponent, message));
                    }
                    return;
                };
                let Some(Representation::Enumerated(list)) = representation else { return };
                let Some(codes) = self.codes(list) else { return };
                for value in values {
                    if !codes.contains(value) && !value.contains('%') {
                        let message = format!("{value:?} of {id:?} is no code of {list}");
                        found.add(unknown(FindingCode::UnknownCode, message));
                    }
                }
            };
            for (at, region) in constraint.regions.iter().enumerate() {
                for (index, key) in region.keys.iter().enumerate() {
                    let place = format!("regions[{at}].keys[{index}]");
                    let values = key.values.iter().filter(|_| !key.remove_prefix);
                    check(place, &key.dimension_id, &mut values.map(|value| value.value.as_str()));
                }
                for (index, set) in region.components.iter().enumerate() {
                    component(&mut check, format!("regions[{at}].components[{index}]"), set);
                }
            }
            for (at, set) in constraint.data_key_sets.iter().enumerate() {
                for (index, key) in set.keys.iter().enumerate() {
                    let place = format!("data_key_sets[{at}].keys[{index}]");
                    for (id, value) in &key.values {
                        check(place.clone(), id, &mut std::iter::once(value.as_str()));
                    }
                    for set in &key.components {
                        component(&mut check, place.clone(), set);
                    }
                }
            }
        }
    }

    /// The codes of a list that the message holds whole.
    fn codes(&self, list: &str) -> Option<HashSet<&'a str>> {
        let artefact = self.held.get(list)?;
        if is_extended(artefact) || artefact.is_partial() || artefact.common().is_external_reference {
            return None;
        }
        let is_list = matches!(artefact, Artefact::Codelist(_) | Artefact::ValueList(_));
        is_list.then(|| items(artefact).iter().flat_map(|list| &list.items).map(|item| item.id).collect())
    }
}

fn component(
    check: &mut impl FnMut(String, &str, &mut dyn Iterator<Item = &str>),
    place: String,
    set: &ComponentValueSet,
) {
    let values = set.values.iter().filter(|value| !set.remove_prefix && value.cascade == CascadeSelection::SelfOnly);
    check(place, &set.component_id, &mut values.map(|value| value.value.as_str()));
}

/// Whether a codelist takes in the codes of others, so that its own codes are not all.
fn is_extended(artefact: &Artefact) -> bool {
    let none = Vec::new();
    let extensions = if let Artefact::Codelist(list) = artefact {
        &list.extensions
    } else if let Artefact::GeoGridCodelist(list) = artefact {
        &list.extensions
    } else if let Artefact::GeographicCodelist(list) = artefact {
        &list.extensions
    } else {
        &none
    };
    !extensions.is_empty()
}

fn components(structure: &DataStructure) -> HashMap<&str, Option<&Representation>> {
    let mut components = HashMap::new();
    components.extend(structure.dimensions.iter().map(|one| (one.id.as_str(), one.representation.as_ref())));
    components.extend(structure.time_dimension.iter().map(|one| (one.id.as_str(), None)));
    components.extend(structure.measure_dimension.iter().map(|one| (one.id.as_str(), None)));
    components.extend(structure.attributes.iter().map(|one| (one.id.as_str(), one.representation.as_ref())));
    components.extend(structure.measures.iter().map(|one| (one.id.as_str(), one.representation.as_ref())));
    components
}

fn collect(above: &str, list: &List<'_>, paths: &mut HashSet<String>) {
    for item in &list.items {
        let path = if above.is_empty() { item.id.to_owned() } else { format!("{above}.{}", item.id) };
        for nested in &item.nested {
            collect(&path, nested, paths);
        }
        paths.insert(path);
    }
}
