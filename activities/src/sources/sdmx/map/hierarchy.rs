//! Hierarchies, and SDMX 2.1's hierarchical codelists.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catalog_rules::sdmx::finding::FindingCode;
use catalog_rules::sdmx::model::{
    Artefact, HierarchicalCode, HierarchicalCodelist, Hierarchy, HierarchyAssociation, Level, Maintained, UrnText,
};
use catalog_rules::sdmx::urn::item_urn;

use super::super::context::Context;
use super::super::node::{Node, items};
use super::common::{Defaults, Identified, facet, first_local, identified, languages, local, reference, reference_of};

/// What stands for a code of a list that the hierarchical codelist gives an alias, until the list is known: the alias
/// and the code. No URN begins with a tab.
const ALIAS: char = '\t';

/// Makes a node of a hierarchy. Its level has only its id yet, since levels may come later in a message.
pub(super) fn node(context: &mut Context, mut node: Node) -> HierarchicalCode {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    let mut code = reference(context, &mut node, "Code|code", "Code");
    let alias = context.word(&mut node, "CodelistAliasRef");
    if let Some(alias) = alias {
        let id = node.child("CodeID").map(|node| local(context, node)).unwrap_or_default();
        code = Some(format!("{ALIAS}{alias}{ALIAS}{id}"));
    }
    let level = first_local(context, &mut node, "Level|level");
    let made = HierarchicalCode {
        id,
        code,
        children: items!(node, HierarchicalCode),
        annotations,
        valid_from: context.instant(&mut node, "validFrom"),
        valid_to: context.instant(&mut node, "validTo"),
        version: context.word(&mut node, "version"),
        level: level.map(|id| Arc::new(Level { id, ..Level::default() })),
        uri,
        links,
    };
    context.done(node);
    made
}

fn levels(context: &mut Context, node: &mut Node, levels: &mut Vec<Arc<Level>>) {
    // One level is within the other.
    for mut node in node.children("Level|level") {
        let Identified { id, annotations, uri, links } = identified(context, &mut node);
        let name = languages(context, &mut node, "Name|names", "name");
        let description = languages(context, &mut node, "Description|descriptions", "description");
        let format = node.child("CodingFormat|codingFormat").map(|node| coding_format(context, node));
        levels.push(Arc::new(Level { id, name, description, coding_format: format, annotations, uri, links }));
        self::levels(context, &mut node, levels);
        context.done(node);
    }
}

fn coding_format(context: &mut Context, mut node: Node) -> catalog_rules::sdmx::model::Facet {
    // In SDMX-ML 2.1 the format is itself the element; some writers put a CodingFormat within it.
    match node.child("CodingFormat") {
        Some(inner) => {
            context.done(node);
            facet(context, inner, Defaults::CODED)
        }
        None => facet(context, node, Defaults::CODED),
    }
}

pub(super) fn hierarchy(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let mut found = Vec::new();
    levels(context, node, &mut found);
    let by_id: HashMap<&str, &Arc<Level>> = found.iter().map(|level| (level.id.as_str(), level)).collect();
    let mut tree = items!(node, HierarchicalCode);
    let mut unknown = BTreeMap::new();
    for node in &mut tree {
        resolve_level(node, &by_id, &mut unknown);
    }
    for (level, count) in unknown {
        let message = format!("the level {level:?} of {count} codes is none of the hierarchy's; it is left out");
        context.find_at(node, FindingCode::UnknownLevel, message);
    }
    Artefact::Hierarchy(Hierarchy {
        common,
        has_formal_levels: context.flag(node, "hasFormalLevels|leveled").unwrap_or_default(),
        levels: found,
        tree,
    })
}

fn resolve_level(
    node: &mut HierarchicalCode,
    levels: &HashMap<&str, &Arc<Level>>,
    unknown: &mut BTreeMap<String, u64>,
) {
    if let Some(named) = node.level.take() {
        match levels.get(named.id.as_str()) {
            Some(level) => node.level = Some(Arc::clone(level)),
            None => *unknown.entry(named.id.clone()).or_default() += 1,
        }
    }
    for child in &mut node.children {
        resolve_level(child, levels, unknown);
    }
}

pub(super) fn association(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    Artefact::HierarchyAssociation(HierarchyAssociation {
        common,
        linked_hierarchy: reference(context, node, "LinkedHierarchy|linkedHierarchy", "Hierarchy"),
        linked_object: reference(context, node, "LinkedObject|linkedObject", ""),
        context_object: reference(context, node, "ContextObject|contextObject", ""),
    })
}

/// A hierarchical codelist, and each of its hierarchies as an artefact of its own: under the list's agency and version,
/// valid when the list is.
pub(super) fn hierarchical_codelist(
    context: &mut Context,
    common: Maintained,
    node: &mut Node,
    made: &mut Vec<Artefact>,
) {
    let mut aliases: BTreeMap<String, UrnText> = BTreeMap::new();
    let mut included = Vec::new();
    for mut child in node.children("IncludedCodelist") {
        let alias = context.word(&mut child, "alias");
        let Some(urn) = reference_of(context, child, "Codelist") else { continue };
        if let Some(alias) = alias {
            aliases.insert(alias, urn.clone());
        }
        included.push(urn);
    }
    let mut hierarchies = Vec::new();
    for mut child in node.children("Hierarchy") {
        let Identified { id, annotations, uri, links } = identified(context, &mut child);
        let own = Maintained {
            id,
            name: languages(context, &mut child, "Name", "name"),
            description: languages(context, &mut child, "Description", "description"),
            annotations,
            uri,
            links,
            maintainer: common.maintainer.clone(),
            version: common.version.clone(),
            valid_from: common.valid_from,
            valid_to: common.valid_to,
            ..Maintained::default()
        };
        let mut hierarchy = hierarchy(context, own, &mut child);
        if let Artefact::Hierarchy(hierarchy) = &mut hierarchy {
            let mut unknown = BTreeMap::new();
            for node in &mut hierarchy.tree {
                resolve_alias(node, &aliases, &mut unknown);
            }
            for (alias, count) in unknown {
                let message =
                    format!("the alias {alias:?} of {count} codes is no included codelist's; the codes are left out");
                context.find_at(&child, FindingCode::BadReference, message);
            }
        }
        context.done(child);
        hierarchies.push(hierarchy.urn());
        made.push(hierarchy);
    }
    made.push(Artefact::HierarchicalCodelist(HierarchicalCodelist {
        common,
        hierarchies,
        included_codelists: included,
    }));
}

fn resolve_alias(
    node: &mut HierarchicalCode,
    aliases: &BTreeMap<String, UrnText>,
    unknown: &mut BTreeMap<String, u64>,
) {
    let named = node.code.as_deref().and_then(|code| code.strip_prefix(ALIAS)).and_then(|rest| rest.split_once(ALIAS));
    if let Some((alias, id)) = named {
        let code = aliases.get(alias).map(|list| item_urn(list, "codelist", "Code", id));
        if code.is_none() {
            *unknown.entry(alias.to_owned()).or_default() += 1;
        }
        node.code = code;
    }
    for child in &mut node.children {
        resolve_alias(child, aliases, unknown);
    }
}
