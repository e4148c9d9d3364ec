//! What is wrong in artefacts at hand, whatever they were read from.
//!
//! [`artefact`] looks at one alone; [`message`] at those of one message together, where references can be followed.

mod items;
mod message;

use std::collections::BTreeSet;

use super::finding::{Finding, FindingCode, Findings};
use super::model::{Artefact, DataStructure, InternationalString, UrnText};
use super::urn::VersionKind;
use items::{Item, Rule, items};
pub use message::message;

/// The findings of one artefact: its version and ids, its names and language tags, double items, missing and cyclic
/// parents, an empty partial scheme, a stub. `place` of each is a path within the artefact.
#[must_use]
pub fn artefact(artefact: &Artefact) -> Vec<Finding> {
    let mut findings = Findings::default();
    artefact_into(artefact, &mut findings);
    findings.into_vec()
}

/// As [`artefact`], into a bounded report.
pub fn artefact_into(artefact: &Artefact, findings: &mut Findings) {
    let mut report = Report { urn: artefact.urn(), found: findings };
    let common = artefact.common();
    match VersionKind::of(&common.version) {
        Some(VersionKind::Semantic | VersionKind::Draft | VersionKind::Legacy) => {}
        Some(VersionKind::Wildcard) | None => report.add(
            FindingCode::BadVersion,
            "version",
            format!("{:?} is no version: expected such as 1.0, 1.2.0 or 1.2.0-draft", common.version),
        ),
    }
    report.id("id", &common.id, Rule::Id);
    for part in common.maintainer.split('.') {
        report.id("maintainer", part, Rule::NcName);
    }
    report.names("", Some(&common.name), &common.description);
    if common.is_external_reference {
        report.add(
            FindingCode::Stub,
            "",
            format!(
                "the message has only a stub (isExternalReference); its content is at {}",
                common.structure_url.as_deref().or(common.service_url.as_deref()).unwrap_or("no address that it gives")
            ),
        );
    }
    let lists = items(artefact);
    let is_empty = lists.iter().all(|list| list.items.is_empty());
    if artefact.is_partial() && is_empty && !common.is_external_reference {
        report.add(FindingCode::EmptyPartial, "", "the scheme says that it is partial and holds no items".to_owned());
    }
    for list in &lists {
        report.list(&list.place, &list.items, list.rule);
    }
    if let Artefact::DataStructure(structure) = artefact {
        report.structure(structure);
    }
}

struct Report<'a> {
    urn: UrnText,
    found: &'a mut Findings,
}

impl Report<'_> {
    fn add(&mut self, code: FindingCode, place: &str, message: String) {
        self.found.add(Finding { code, urn: self.urn.clone(), place: place.to_owned(), message });
    }

    fn id(&mut self, place: &str, id: &str, rule: Rule) {
        if !rule.allows(id) {
            self.add(FindingCode::BadId, place, format!("{id:?} is no id: expected {}", rule.expected()));
        }
    }

    /// Looks at a name and a description. Without a name for what needs none.
    fn names(&mut self, place: &str, name: Option<&InternationalString>, description: &InternationalString) {
        let at = |field: &str| if place.is_empty() { field.to_owned() } else { format!("{place}.{field}") };
        if let Some(name) = name {
            if name.is_empty() {
                self.add(FindingCode::NoName, &at("name"), "there is no name in any language".to_owned());
            }
            for (language, _) in name.iter().filter(|(_, text)| text.trim().is_empty()) {
                self.add(FindingCode::EmptyName, &at("name"), format!("the name in {language:?} is empty"));
            }
        }
        let texts = name.into_iter().map(|texts| ("name", texts)).chain([("description", description)]);
        for (field, texts) in texts {
            for language in texts.keys().filter(|language| !is_language(language)) {
                self.add(
                    FindingCode::BadLanguage,
                    &at(field),
                    format!("{language:?} is no language tag: expected such as en or fr-CA; kept as it is"),
                );
            }
        }
    }

    /// What the parts of a data structure say of each other.
    fn structure(&mut self, structure: &DataStructure) {
        let dimensions = structure.dimensions.iter().map(|one| one.id.as_str());
        let dimensions = dimensions.chain(structure.time_dimension.iter().map(|one| one.id.as_str()));
        let dimensions: BTreeSet<&str> =
            dimensions.chain(structure.measure_dimension.iter().map(|one| one.id.as_str())).collect();
        let groups: BTreeSet<&str> = structure.groups.iter().flatten().map(|one| one.id.as_str()).collect();
        let measures: BTreeSet<&str> = structure.measures.iter().map(|one| one.id.as_str()).collect();
        for (at, group) in structure.groups.iter().flatten().enumerate() {
            let place = format!("groups[{at}]");
            if group.dimension_ids.is_empty() {
                let message = format!("the group {:?} has no dimensions", group.id);
                self.add(FindingCode::BadValue, &place, message);
            }
            self.among(&place, &group.dimension_ids, &dimensions, "dimension");
        }
        for (at, attribute) in structure.attributes.iter().enumerate() {
            let place = format!("attributes[{at}]");
            self.among(&place, attribute.related_dimensions.iter().flatten(), &dimensions, "dimension");
            self.among(&place, &attribute.related_group, &groups, "group");
            self.among(&place, &attribute.attachment_groups, &groups, "group");
            self.among(&place, attribute.related_measures.iter().flatten(), &measures, "measure");
        }
        for (at, usage) in structure.metadata_attributes.iter().enumerate() {
            let place = format!("metadata_attributes[{at}]");
            self.among(&place, usage.related_dimensions.iter().flatten(), &dimensions, "dimension");
            self.among(&place, &usage.related_group, &groups, "group");
        }
    }

    fn among<'a>(
        &mut self,
        place: &str,
        ids: impl IntoIterator<Item = &'a String>,
        known: &BTreeSet<&str>,
        kind: &str,
    ) {
        for id in ids.into_iter().filter(|id| !known.contains(id.as_str())) {
            let message = format!("{id:?} is no {kind} of the structure; kept as it is");
            self.add(FindingCode::UnknownComponent, place, message);
        }
    }

    fn list(&mut self, place: &str, items: &[Item<'_>], rule: Rule) {
        let mut at = std::collections::HashMap::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let here = || format!("{place}[{index}]");
            self.id(&here(), item.id, rule);
            if let Some(first) = at.get(item.id) {
                self.add(
                    FindingCode::DuplicateItem,
                    &here(),
                    format!("the id {:?} stands at {place}[{first}] too; both are kept", item.id),
                );
            } else {
                at.insert(item.id, index);
            }
            if let Some(description) = item.description {
                self.names(&here(), item.name, description);
            }
            for nested in &item.nested {
                self.list(&format!("{}.{}", here(), nested.place), &nested.items, nested.rule);
            }
        }
        self.parents(place, items, &at);
    }

    fn parents(&mut self, place: &str, items: &[Item<'_>], at: &std::collections::HashMap<&str, usize>) {
        let parent = |index: usize| items[index].parent.and_then(|parent| at.get(parent).copied());
        // Each item is passed once: `done` holds those whose way up is known to end, or is told already.
        let mut done = vec![false; items.len()];
        for (index, item) in items.iter().enumerate() {
            if let Some(missing) = item.parent.filter(|parent| !at.contains_key(parent)) {
                self.add(
                    FindingCode::MissingParent,
                    &format!("{place}[{index}]"),
                    format!("the parent {missing:?} of {:?} is not among the items; kept as it is", item.id),
                );
            }
            let (mut way, mut here) = (Vec::<usize>::new(), Some(index));
            let mut on_way = std::collections::HashSet::new();
            while let Some(current) = here.filter(|current| !done[*current]) {
                if !on_way.insert(current) {
                    let from = way.iter().position(|passed| *passed == current).unwrap_or_default();
                    let ids: Vec<&str> = way[from..].iter().take(10).map(|at| items[*at].id).collect();
                    self.add(
                        FindingCode::CyclicParent,
                        &format!("{place}[{current}]"),
                        format!("the parents lead back: {} → {}", ids.join(" → "), items[current].id),
                    );
                    break;
                }
                way.push(current);
                here = parent(current);
            }
            for passed in way {
                done[passed] = true;
            }
        }
    }
}

/// Whether `tag` has the form of a language tag (XML's `xs:language`), or is the `_default` of SDMX-JSON's texts
/// without a language, which has a finding of its own.
fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let first = parts.next().unwrap_or_default();
    let letters = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic());
    let signs = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // A primary tag of four letters or more is reserved, registered for nothing: `english` is a name, not a tag.
    tag == "_default" || (letters(first) && first.len() <= 3 && parts.all(signs))
}

#[cfg(test)]
mod tests;
