//! The members of each dimension: from the metadata, or grown from the data.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catalog_rules::sdmx::model::InternationalString;

use super::dialect::{Dialect, Layout};
use super::error::CodrError;
use super::finding::{FindingKind, Findings};
use super::language::{Language, folded};
use super::metadata::{MemberAttribute, Metadata};

/// A member of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Member {
    pub(super) names: InternationalString,
    pub(super) definitions: InternationalString,
    pub(super) parent: Option<u32>,
    pub(super) classification: String,
    pub(super) terminated: bool,
    pub(super) notes: String,
    /// Attributes with the language that their texts are in.
    pub(super) attributes: Vec<(Language, MemberAttribute)>,
}

/// A dimension and its members by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dimension {
    /// From 1; the first is the geography.
    pub(super) position: usize,
    pub(super) names: InternationalString,
    pub(super) definitions: InternationalString,
    pub(super) notes: String,
    pub(super) members: BTreeMap<u32, Member>,
    /// Whether the members come from a member list, which then holds every one.
    pub(super) listed: bool,
}

impl Dimension {
    /// The name in the first language at hand.
    pub(super) fn name(&self) -> &str {
        self.names.values().next().map_or("", String::as_str)
    }
}

/// A data file's name and dialect, and the metadata of the same product.
pub(super) struct Described<'a> {
    pub(super) file: &'a str,
    pub(super) dialect: &'a Dialect,
}

/// The dimensions of a table whose data files are `data` and whose metadata files are `metadata`, one per language at
/// most, English first.
///
/// # Errors
/// What disagrees: [`CodrError::DimensionCount`], [`CodrError::DimensionName`], [`CodrError::LanguagesDisagree`]; and
/// what is no member list: [`CodrError::DuplicateMember`], [`CodrError::ParentCycle`], [`CodrError::MetadataRecord`].
pub(super) fn dimensions(
    data: &[Described<'_>],
    metadata: &[Metadata],
    findings: &mut Findings,
) -> Result<Vec<Dimension>, CodrError> {
    let count = same_count(data, metadata)?;
    let mut dimensions: Vec<Dimension> = (1..=count)
        .map(|position| Dimension {
            position,
            names: InternationalString::new(),
            definitions: InternationalString::new(),
            notes: String::new(),
            members: BTreeMap::new(),
            listed: false,
        })
        .collect();
    for described in data {
        let language = described.dialect.language;
        for (dimension, name) in dimensions.iter_mut().skip(1).zip(&described.dialect.names) {
            if !name.is_empty() {
                dimension.names.insert(language.tag().to_owned(), name.clone());
            }
        }
        if let Layout::Census { members } = &described.dialect.layout
            && let (Some(last), Some((name, _))) =
                (dimensions.last_mut(), members.first().and_then(|member| member.label.split_once(':')))
        {
            last.names.insert(language.tag().to_owned(), name.trim().to_owned());
        }
        let geography = match language {
            Language::English => "Geography",
            Language::French => "Géographie",
        };
        dimensions[0].names.insert(language.tag().to_owned(), geography.to_owned());
    }
    for meta in metadata {
        for (dimension, described) in dimensions.iter_mut().zip(&meta.dimensions) {
            check_name(data, meta, described)?;
            dimension.names.insert(meta.language.tag().to_owned(), described.name.clone());
            if !described.definition.is_empty() {
                dimension.definitions.insert(meta.language.tag().to_owned(), described.definition.clone());
            }
            if dimension.notes.is_empty() {
                dimension.notes.clone_from(&described.notes);
            }
        }
    }
    let mut listed_in: Option<&Metadata> = None;
    for meta in metadata.iter().filter(|meta| !meta.members.is_empty()) {
        let lists = member_lists(meta, count)?;
        match listed_in {
            None => {
                for (dimension, members) in dimensions.iter_mut().zip(lists) {
                    dimension.members = members;
                    dimension.listed = true;
                }
                listed_in = Some(meta);
            }
            Some(first) => {
                for (dimension, members) in dimensions.iter_mut().zip(lists) {
                    merge(dimension, members, first, meta)?;
                }
            }
        }
    }
    match listed_in {
        Some(meta) => {
            for dimension in &mut dimensions {
                check_parents(dimension, &meta.file, findings)?;
            }
        }
        None => {
            let file: Arc<str> = data.first().map_or("", |described| described.file).into();
            let kind = match metadata.first() {
                None => FindingKind::NoMetadata,
                Some(_) => FindingKind::MetadataWithoutMembers,
            };
            findings.note(kind, &file, None, 0, || {
                "members are taken from the coordinates and labels of the data, without parents".to_owned()
            });
        }
    }
    Ok(dimensions)
}

fn same_count(data: &[Described<'_>], metadata: &[Metadata]) -> Result<usize, CodrError> {
    let Some(first) = data.first() else { return Ok(0) };
    let count = first.dialect.dimensions();
    let others = data.iter().skip(1).map(|described| (described.file.to_owned(), described.dialect.dimensions()));
    let listed = metadata.iter().flat_map(|meta| {
        let rows = (!meta.dimensions.is_empty()).then_some(meta.dimensions.len());
        rows.into_iter().chain(meta.cube.dimensions).map(|found| (meta.file.to_string(), found))
    });
    for (file, found) in others.chain(listed) {
        if found != count {
            return Err(CodrError::DimensionCount { file, found, expected: count, expected_in: first.file.to_owned() });
        }
    }
    Ok(count)
}

/// A data file's column is called as its dimension is in the metadata of the same language; the geography's is not.
fn check_name(
    data: &[Described<'_>],
    meta: &Metadata,
    described: &super::metadata::MetaDimension,
) -> Result<(), CodrError> {
    let Some(file) = data.iter().find(|file| file.dialect.language == meta.language) else { return Ok(()) };
    let Some(column) = described.position.checked_sub(2).and_then(|at| file.dialect.names.get(at)) else {
        return Ok(());
    };
    let plain = |text: &str| folded(text).replace('"', "").split_whitespace().collect::<Vec<_>>().join(" ");
    if column.is_empty() || plain(column) == plain(&described.name) {
        return Ok(());
    }
    Err(CodrError::DimensionName {
        file: file.file.to_owned(),
        position: described.position,
        found: column.clone(),
        expected: described.name.clone(),
        expected_in: meta.file.to_string(),
    })
}

fn member_lists(meta: &Metadata, count: usize) -> Result<Vec<BTreeMap<u32, Member>>, CodrError> {
    let mut lists: Vec<BTreeMap<u32, Member>> = vec![BTreeMap::new(); count];
    let mut lines: HashMap<(usize, u32), u64> = HashMap::with_capacity(meta.members.len());
    let tag = meta.language.tag();
    for member in &meta.members {
        let bad = |expected| CodrError::MetadataRecord {
            file: meta.file.to_string(),
            line: member.line,
            block: "Dimension ID, Member Name",
            found: format!("{}, {}", member.position, member.name),
            expected,
        };
        let Some(list) = member.position.checked_sub(1).and_then(|at| lists.get_mut(at)) else {
            return Err(bad("the id of one of the table's dimensions"));
        };
        if let Some(first_line) = lines.insert((member.position, member.id), member.line) {
            return Err(CodrError::DuplicateMember {
                file: meta.file.to_string(),
                line: member.line,
                first_line,
                position: member.position,
                member: member.id,
            });
        }
        let text = |text: &str| -> InternationalString {
            if text.is_empty() {
                InternationalString::new()
            } else {
                InternationalString::from([(tag.to_owned(), text.to_owned())])
            }
        };
        list.insert(
            member.id,
            Member {
                names: text(&member.name),
                definitions: text(&member.definition),
                parent: member.parent,
                classification: member.classification.clone(),
                terminated: member.terminated,
                notes: member.notes.clone(),
                attributes: Vec::new(),
            },
        );
    }
    for attribute in &meta.attributes {
        if let Some(member) = attribute
            .position
            .checked_sub(1)
            .and_then(|at| lists.get_mut(at))
            .and_then(|l| l.get_mut(&attribute.member))
        {
            member.attributes.push((meta.language, attribute.clone()));
        }
    }
    if lists.iter().any(BTreeMap::is_empty) {
        return Err(CodrError::MetadataBlock {
            file: meta.file.to_string(),
            block: "Dimension ID, Member Name",
            expected: "members of every dimension, or of none",
        });
    }
    Ok(lists)
}

/// Adds the second language's names to a dimension whose members must be the same.
fn merge(
    dimension: &mut Dimension,
    mut other: BTreeMap<u32, Member>,
    first: &Metadata,
    second: &Metadata,
) -> Result<(), CodrError> {
    let place = |member: Option<&Member>| match member.map(|member| member.parent) {
        None => "absent".to_owned(),
        Some(None) => "a root".to_owned(),
        Some(Some(parent)) => format!("under {parent}"),
    };
    let ids: std::collections::BTreeSet<u32> = dimension.members.keys().chain(other.keys()).copied().collect();
    for id in ids {
        let (one, two) = (dimension.members.get_mut(&id), other.get_mut(&id));
        let (in_first, in_second) = (place(one.as_deref()), place(two.as_deref()));
        match (one, two) {
            (Some(one), Some(two)) if in_first == in_second => {
                one.names.append(&mut two.names);
                one.definitions.append(&mut two.definitions);
                one.attributes.append(&mut two.attributes);
            }
            (_, _) => {
                return Err(CodrError::LanguagesDisagree {
                    first: first.file.to_string(),
                    second: second.file.to_string(),
                    position: dimension.position,
                    member: id,
                    in_first,
                    in_second,
                });
            }
        }
    }
    Ok(())
}

/// Refuses a cycle of parents. A parent that the list does not hold makes its child a root, with a finding.
fn check_parents(dimension: &mut Dimension, file: &Arc<str>, findings: &mut Findings) -> Result<(), CodrError> {
    let position = dimension.position;
    let ids: Vec<u32> = dimension.members.keys().copied().collect();
    for id in &ids {
        let parent = dimension.members.get(id).and_then(|member| member.parent);
        if let Some(parent) = parent
            && !dimension.members.contains_key(&parent)
        {
            if let Some(member) = dimension.members.get_mut(id) {
                member.parent = None;
            }
            findings.note(FindingKind::MissingParent, file, None, (position as u64) << 32 | u64::from(*id), || {
                format!("member {id} of dimension {position} names member {parent} as its parent, which is not listed")
            });
        }
    }
    // Each walk marks what it passes; a mark of an earlier walk leads to a root, its own is a cycle.
    let mut marks: HashMap<u32, u32> = HashMap::with_capacity(ids.len());
    for id in &ids {
        let mut at = *id;
        loop {
            match marks.insert(at, *id) {
                Some(walk) if walk == *id => {
                    let dimension = dimension.name().to_owned();
                    return Err(CodrError::ParentCycle { file: file.to_string(), position, dimension, member: at });
                }
                Some(_) => break,
                None => {}
            }
            match dimension.members.get(&at).and_then(|member| member.parent) {
                Some(parent) => at = parent,
                None => break,
            }
        }
    }
    Ok(())
}

/// Ids up to this one are looked up in a table by their number.
const DENSE: u32 = 1 << 20;

/// The members of one dimension as the rows of one file name them.
#[derive(Debug)]
pub(super) struct Slots {
    /// Slot by id, plus one; zero for none.
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
    pub(super) ids: Vec<u32>,
    /// The label that was last seen for the slot; none before the first row.
    pub(super) labels: Vec<Option<Box<str>>>,
    /// The label that was first seen for the slot.
    pub(super) first_labels: Vec<Option<Box<str>>>,
    /// Whether an unknown member gets a slot.
    grows: bool,
}

impl Slots {
    /// Slots of the members of `dimension`.
    pub(super) fn of(dimension: &Dimension) -> Self {
        let mut slots = Self {
            dense: Vec::new(),
            sparse: HashMap::new(),
            ids: Vec::new(),
            labels: Vec::new(),
            first_labels: Vec::new(),
            grows: false,
        };
        for id in dimension.members.keys() {
            slots.add(*id);
        }
        slots.grows = !dimension.listed;
        slots
    }

    /// The slot of member `id`, a new one where unknown members are taken.
    pub(super) fn find(&mut self, id: u32) -> Option<usize> {
        let slot = if id < DENSE {
            self.dense.get(id as usize).copied().unwrap_or_default()
        } else {
            self.sparse.get(&id).copied().unwrap_or_default()
        };
        match slot.checked_sub(1) {
            Some(slot) => Some(slot as usize),
            None if self.grows => Some(self.add(id)),
            None => None,
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "a dimension has far fewer than 2^32 members")]
    fn add(&mut self, id: u32) -> usize {
        let slot = self.ids.len();
        self.ids.push(id);
        self.labels.push(None);
        self.first_labels.push(None);
        let stored = slot as u32 + 1;
        if id < DENSE {
            if self.dense.len() <= id as usize {
                self.dense.resize((id as usize + 1).next_power_of_two(), 0);
            }
            self.dense[id as usize] = stored;
        } else {
            self.sparse.insert(id, stored);
        }
        slot
    }
}

/// Gives `dimension` the names that the rows of a file in `language` use, where the metadata gave none, and the
/// members that were grown.
pub(super) fn name_from_labels(dimension: &mut Dimension, slots: &Slots, language: Language) {
    for (id, label) in slots.ids.iter().zip(&slots.first_labels) {
        let Some(label) = label else { continue };
        if !dimension.listed {
            dimension.members.entry(*id).or_default();
        }
        if let Some(member) = dimension.members.get_mut(id) {
            let plain = without_code(label, &member.classification).trim();
            if !plain.is_empty() {
                member.names.entry(language.tag().to_owned()).or_insert_with(|| plain.to_owned());
            }
        }
    }
}

/// `label` without ` [code]` at its end.
pub(super) fn without_code<'a>(label: &'a str, code: &str) -> &'a str {
    let label = label.trim();
    if code.is_empty() {
        return label;
    }
    label
        .strip_suffix(']')
        .and_then(|rest| rest.strip_suffix(code))
        .and_then(|rest| rest.strip_suffix('['))
        .map_or(label, str::trim_end)
}

#[cfg(test)]
mod tests;
