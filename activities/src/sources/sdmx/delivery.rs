//! From an artefact's tree to whoever receives the artefacts.

use std::collections::HashMap;

use catalog_rules::sdmx::finding::{Finding, FindingCode};
use catalog_rules::sdmx::inspect;
use catalog_rules::sdmx::model::{Artefact, MetadataAttribute, Representation, UrnText};
use catalog_rules::sdmx::urn::item_urn;

use super::context::{Context, Dialect};
use super::map;
use super::node::{Fold, Node};
use super::{DEPTH, HELD_BYTES, ReadError};

pub(super) struct Delivery<'a> {
    pub context: Context,
    emit: &'a mut dyn FnMut(Artefact),
    /// The core representations of the concepts of the message, by URN.
    concepts: HashMap<UrnText, Representation>,
    /// Data and metadata structures, until all concepts are known.
    held: Vec<Artefact>,
    /// How many bytes of trees there are at the moment.
    live_bytes: usize,
    /// The place of the first finding of the artefact at hand.
    first_finding: usize,
}

impl<'a> Delivery<'a> {
    pub fn new(emit: &'a mut dyn FnMut(Artefact)) -> Self {
        Self {
            context: Context::new(Dialect::Ml21),
            emit,
            concepts: HashMap::new(),
            held: Vec::new(),
            live_bytes: 0,
            first_finding: 0,
        }
    }

    /// Begins an artefact whose attributes are in `node`, as far as they are known.
    pub fn begin(&mut self, node: &Node) {
        self.live_bytes = 0;
        self.first_finding = self.context.findings.len();
        self.context.texts_without_language = 0;
        self.context.urn = map::urn(node).unwrap_or_default();
    }

    /// Counts `bytes` of a tree that grew at `place`.
    pub fn grow(&mut self, bytes: usize, place: impl FnOnce() -> String) -> Result<(), ReadError> {
        self.live_bytes = self.live_bytes.saturating_add(bytes);
        if self.live_bytes > HELD_BYTES {
            return Err(ReadError::TooLarge { place: place(), limit_bytes: HELD_BYTES });
        }
        Ok(())
    }

    pub fn depth(depth: usize, place: impl FnOnce() -> String) -> Result<(), ReadError> {
        if depth > DEPTH { Err(ReadError::TooDeep { place: place(), limit: DEPTH }) } else { Ok(()) }
    }

    /// Takes a child that has ended: an item becomes model.
    pub fn child(&mut self, parent: &mut Node, child: Node) {
        self.look_at_characters(&child);
        match Fold::of(&parent.name, &child.name) {
            Some(fold) => {
                self.live_bytes = self.live_bytes.saturating_sub(child.held_bytes);
                parent.items.push(map::fold(&mut self.context, fold, child));
            }
            None => {
                parent.held_bytes += child.held_bytes;
                parent.children.push(child);
            }
        }
    }

    /// Reports control characters, which XML 1.0 forbids and JSON allows.
    fn look_at_characters(&mut self, node: &Node) {
        let control = |text: &str| text.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r'));
        let texts = node.attributes.iter().map(|(_, value)| value).chain([&node.text]);
        let found: Vec<char> = texts.filter_map(|text| control(text)).collect();
        for character in found {
            let message = format!("the text holds the control character U+{:04X}; kept as it is", u32::from(character));
            self.context.find_at(node, FindingCode::ControlCharacter, message);
        }
    }

    /// Takes an artefact that has ended.
    pub fn artefact(&mut self, node: Node) {
        self.look_at_characters(&node);
        if let Some(urn) = map::urn(&node) {
            self.context.findings.name(self.first_finding, &urn);
            self.context.urn = urn;
        }
        let made = map::artefacts(&mut self.context, node);
        let (urn, without) = (self.context.urn.clone(), self.context.texts_without_language);
        if without > 0 {
            self.context.findings.add(Finding {
                code: FindingCode::NoLanguage,
                urn,
                place: String::new(),
                message: format!("{without} texts have no language (a name without names); their language is _default"),
            });
        }
        for mut artefact in made {
            self.drop_what_the_class_lacks(&mut artefact);
            self.deliver(artefact);
        }
        self.context.urn.clear();
    }

    /// The model has some fields in most classes and not in all.
    fn drop_what_the_class_lacks(&mut self, artefact: &mut Artefact) {
        let (has_links, has_final) = (artefact.has_links(), artefact.has_legacy_is_final());
        let common = artefact.common_mut();
        let links = if has_links { Vec::new() } else { std::mem::take(&mut common.links) };
        let is_final = if has_final { None } else { common.legacy_is_final.take() };
        let mut tell = |what: &str| {
            let message = format!("{what} has no place in the model for this class and is left out");
            self.context.find(FindingCode::NotRepresented, what.to_owned(), message);
        };
        if !links.is_empty() {
            tell("links");
        }
        // That it is not final is what SDMX 2.1 says of any that does not say.
        if is_final == Some(true) {
            tell("isFinal");
        }
    }

    /// Reports an artefact of a class that the model does not have.
    pub fn unsupported(&mut self, node: &Node) {
        let urn = map::urn(node).unwrap_or_default();
        let message = format!("artefacts of the class {} are not in the model, and it is left out", node.name);
        let place = super::context::place(node);
        self.context.findings.add(Finding { code: FindingCode::UnsupportedClass, urn, place, message });
    }

    fn deliver(&mut self, artefact: Artefact) {
        if let Artefact::ConceptScheme(scheme) = &artefact {
            let urn = artefact.urn();
            for concept in &scheme.concepts {
                if let Some(core) = &concept.core_representation {
                    let concept = item_urn(&urn, "conceptscheme", "Concept", &concept.id);
                    self.concepts.insert(concept, core.clone());
                }
            }
        }
        if matches!(artefact, Artefact::DataStructure(_) | Artefact::MetadataStructure(_)) {
            self.held.push(artefact);
        } else {
            inspect::artefact_into(&artefact, &mut self.context.findings);
            (self.emit)(artefact);
        }
    }

    /// Hands on what was held, and gives format and findings.
    pub fn finish(mut self) -> (Dialect, Vec<Finding>) {
        for mut artefact in std::mem::take(&mut self.held) {
            self.inherit(&mut artefact);
            inspect::artefact_into(&artefact, &mut self.context.findings);
            (self.emit)(artefact);
        }
        (self.context.dialect, self.context.findings.into_vec())
    }

    /// A component without a representation of its own has its concept's, when the message holds that.
    fn inherit(&self, artefact: &mut Artefact) {
        let of = |concept: Option<&UrnText>| concept.and_then(|urn| self.concepts.get(urn)).cloned();
        if let Artefact::DataStructure(structure) = artefact {
            for one in structure.dimensions.iter_mut().filter(|one| one.representation.is_none()) {
                one.representation = of(one.concept.as_ref());
            }
            // Without a format of its own, a time dimension has none yet (see `map::structure`).
            if let Some(one) = structure.time_dimension.as_mut().filter(|one| one.representation.data_type.is_none()) {
                one.representation = match of(one.concept.as_ref()) {
                    Some(Representation::Text(facet)) => *facet,
                    Some(Representation::Enumerated(_)) | None => map::time_format(),
                };
            }
            for one in structure.attributes.iter_mut().filter(|one| one.representation.is_none()) {
                one.representation = of(one.concept.as_ref());
            }
            for one in structure.measures.iter_mut().filter(|one| one.representation.is_none()) {
                one.representation = of(one.concept.as_ref());
            }
        } else if let Artefact::MetadataStructure(structure) = artefact {
            self.inherit_metadata(&mut structure.attributes);
        }
    }

    fn inherit_metadata(&self, attributes: &mut [MetadataAttribute]) {
        for attribute in attributes {
            if attribute.representation.is_none() {
                let core = attribute.concept.as_ref().and_then(|urn| self.concepts.get(urn));
                attribute.representation = core.cloned();
            }
            self.inherit_metadata(&mut attribute.children);
        }
    }
}
