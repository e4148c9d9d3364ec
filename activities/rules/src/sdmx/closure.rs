//! The structural closure of a dataflow (*edition* §9): what its structure fingerprint covers.

use std::collections::{BTreeMap, BTreeSet};

use super::model::UrnText;
use super::urn::{Urn, class_of, version_sort};

/// The artefacts at hand and who refers to whom, by URN. It knows no class: an edge from and to any artefact or item
/// counts.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    held: BTreeSet<UrnText>,
    /// For each artefact without its version, its latest version at hand.
    latest: BTreeMap<UrnText, UrnText>,
    forward: BTreeMap<UrnText, BTreeSet<UrnText>>,
    backward: BTreeMap<UrnText, BTreeSet<UrnText>>,
}

impl Graph {
    /// The graph of the artefacts `held`, which are the only ones that a closure can hold, and the references `edges`,
    /// each from its source to its target.
    ///
    /// A reference to an item counts as one to the artefact that holds it, and one without a version as one to the
    /// latest version held. A reference to what is not held leads nowhere: the references check reports it.
    pub fn new<'a>(
        held: impl IntoIterator<Item = &'a str>,
        edges: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut graph = Self { held: held.into_iter().map(str::to_owned).collect(), ..Self::default() };
        for urn in &graph.held {
            let Some((unversioned, version)) = split_version(urn) else { continue };
            let latest = graph.latest.entry(unversioned).or_insert_with(|| urn.clone());
            if split_version(latest).is_none_or(|(_, other)| version_sort(&other) < version_sort(&version)) {
                latest.clone_from(urn);
            }
        }
        for (source, target) in edges {
            if let (Some(source), Some(target)) = (graph.resolve(source), graph.resolve(target)) {
                graph.backward.entry(target.clone()).or_default().insert(source.clone());
                graph.forward.entry(source).or_default().insert(target);
            }
        }
        graph
    }

    /// The artefact held that `urn` names: itself, the holder of an item, or the latest version.
    fn resolve(&self, urn: &str) -> Option<UrnText> {
        if self.held.contains(urn) {
            return Some(urn.to_owned());
        }
        let holder = urn.parse::<Urn>().ok()?.holder()?;
        let text = holder.to_string();
        if holder.version.is_some() { self.held.get(&text).cloned() } else { self.latest.get(&text).cloned() }
    }

    /// The closure of `dataflow`: what it and its data structure refer to, transitively; every artefact other than a
    /// dataflow or a binding that refers to either; and what those refer to, transitively. The dataflow and its data
    /// structure belong to it. Another dataflow of the same data structure refers to it and is left out, unless
    /// something within the closure refers to that dataflow.
    ///
    /// Empty when the dataflow is not held.
    #[must_use]
    pub fn closure(&self, dataflow: &str) -> BTreeSet<UrnText> {
        let Some(dataflow) = self.held.get(dataflow) else { return BTreeSet::new() };
        let mut centre = vec![dataflow];
        centre.extend(self.targets(dataflow).filter(|target| class_of(target) == "DataStructure"));
        let referrers = centre.iter().flat_map(|urn| self.backward.get(*urn)).flatten();
        let mut to_visit: Vec<&UrnText> =
            referrers.filter(|source| !matches!(class_of(source), "Dataflow" | "DataflowBinding")).collect();
        to_visit.extend(centre);
        let mut closure = BTreeSet::new();
        while let Some(urn) = to_visit.pop() {
            if closure.insert(urn.clone()) {
                to_visit.extend(self.targets(urn));
            }
        }
        closure
    }

    fn targets<'a>(&'a self, urn: &str) -> impl Iterator<Item = &'a UrnText> + use<'a> {
        self.forward.get(urn).into_iter().flatten()
    }
}

fn split_version(urn: &str) -> Option<(UrnText, String)> {
    let mut urn: Urn = urn.parse().ok()?;
    let version = urn.version.take()?;
    Some((urn.to_string(), version))
}

#[cfg(test)]
mod tests;
