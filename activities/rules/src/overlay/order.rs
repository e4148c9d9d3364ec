//! The order in which entries apply, and which of them reach a target (*edition* §5.3).

use std::collections::{BTreeMap, HashMap};

use super::document::{Audience, Overlay, OverlayEntry, OverlayText, applies};
use super::selector::{Selector, SelectorKind};
use super::target::Named;
use crate::sdmx::urn::Urn;

/// Which overlay and which of its entries or texts, both counted from 0 in the order in which they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The overlay.
    pub overlay: usize,
    /// The entry, or the text.
    pub position: usize,
}

/// What overlays are applied for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// What a server shows. It never applies a text (*edition* §5.6).
    Serving,
    /// A new edition, texts included.
    Folding,
}

/// A server would have to apply a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "edition §5.6: texts[{position}] of overlay {overlay:?} changes a {field}, which is structure: it changes only \
     through a new edition"
)]
pub struct TextsAreFolded {
    /// The overlay's id.
    pub overlay: String,
    /// Which text, counted from 0.
    pub position: usize,
    /// `name` or `description`.
    pub field: &'static str,
}

impl TextsAreFolded {
    /// What to do instead.
    #[must_use]
    pub fn fix(&self) -> String {
        "fold the overlay into a new edition: jobctl run fold --product P --overlay FILE --reason …".to_owned()
    }
}

/// Refuses the first text that applies to `audience`.
pub(super) fn refuse_texts(overlays: &[Overlay], audience: Option<&Audience>) -> Result<(), TextsAreFolded> {
    for overlay in overlays {
        let mut texts = overlay.texts.iter().enumerate();
        if let Some((position, text)) = texts.find(|(_, text)| applies(text.scope.as_ref(), audience)) {
            return Err(TextsAreFolded { overlay: overlay.id.clone(), position, field: text.field.word() });
        }
    }
    Ok(())
}

/// An artefact by agency, id and version.
type OfVersion<'a> = (&'a str, &'a str, &'a str);
/// What a URN names within an artefact: a class, and an item or the artefact itself.
type Inner<'a> = (&'a str, Option<&'a str>);
/// URNs with the places of their steps, ascending.
type Places<'a> = Vec<(&'a Urn, usize)>;

/// Entries or texts in the order in which they apply: by specificity, then by overlay, then by place in the document.
#[derive(Debug)]
pub(super) struct Ordered<'o, T> {
    steps: Vec<(Source, &'o T)>,
    /// Each list below holds places in `steps`, ascending.
    all: Vec<usize>,
    classes: BTreeMap<&'o str, Vec<usize>>,
    artefacts: HashMap<(&'o str, &'o str), Vec<usize>>,
    /// URNs by agency, id and version of the artefact that they name or that holds the item.
    urns: HashMap<OfVersion<'o>, Places<'o>>,
}

impl<'o, T> Ordered<'o, T> {
    fn new(selected: impl Iterator<Item = (Source, &'o T)>, selector: fn(&'o T) -> &'o Selector) -> Self {
        let mut steps: Vec<(Source, &'o T)> = selected.collect();
        // Stable: what is equally specific stays in the order of overlays and documents.
        steps.sort_by_key(|(_, step)| selector(step).specificity());
        let mut ordered = Self {
            steps: Vec::new(),
            all: Vec::new(),
            classes: BTreeMap::new(),
            artefacts: HashMap::new(),
            urns: HashMap::new(),
        };
        for (at, (_, step)) in steps.iter().enumerate() {
            let selector = selector(step);
            match selector.kind() {
                SelectorKind::All => ordered.all.push(at),
                SelectorKind::Class => ordered.classes.entry(selector.as_str()).or_default().push(at),
                SelectorKind::Artefact { agency, id } => ordered.artefacts.entry((agency, id)).or_default().push(at),
                SelectorKind::Urn(urn) => {
                    // No artefact is without a version, so that such a URN names none.
                    if let Some(version) = &urn.version {
                        ordered.urns.entry((&urn.agency, &urn.id, version)).or_default().push((urn, at));
                    }
                }
            }
        }
        ordered.steps = steps;
        ordered
    }

    pub(super) fn step(&self, at: usize) -> (Source, &'o T) {
        self.steps[at]
    }

    /// What of this can reach the artefact of this agency, id and version, or an item in it.
    pub(super) fn within<'w>(&'w self, (agency, id, version): OfVersion<'w>) -> Within<'w, 'o, T> {
        let whole = self.artefacts.get(&(agency, id)).map(Vec::as_slice).unwrap_or_default();
        let mut named: HashMap<Inner<'_>, Places<'_>> = HashMap::new();
        for (urn, at) in self.urns.get(&(agency, id, version)).into_iter().flatten() {
            named.entry((urn.class.as_str(), urn.item.as_deref())).or_default().push((urn, *at));
        }
        Within { ordered: self, whole, named }
    }
}

/// What of [`Ordered`] can reach one artefact.
pub(super) struct Within<'w, 'o, T> {
    ordered: &'w Ordered<'o, T>,
    whole: &'w [usize],
    named: HashMap<Inner<'w>, Places<'w>>,
}

impl<T> Within<'_, '_, T> {
    /// The places of the steps that reach the target, in the order in which they apply.
    pub(super) fn reach(&self, target: &Named<'_>, reached: &mut Vec<usize>) {
        reached.clear();
        reached.extend_from_slice(&self.ordered.all);
        let before = reached.len();
        for class in target.classes {
            reached.extend(self.ordered.classes.get(class).into_iter().flatten());
        }
        // The names of one class are equally specific.
        reached[before..].sort_unstable();
        if target.item.is_none() {
            reached.extend_from_slice(self.whole);
        }
        if self.named.is_empty() {
            return;
        }
        let before = reached.len();
        for class in target.classes {
            let named = self.named.get(&(*class, target.item)).into_iter().flatten();
            reached.extend(named.filter(|(urn, _)| urn.package == target.package).map(|(_, at)| *at));
        }
        reached[before..].sort_unstable();
    }
}

/// The entries and texts of overlays that apply to an audience, in the order in which they apply.
#[derive(Debug)]
pub struct Applying<'o> {
    pub(super) overlays: &'o [Overlay],
    pub(super) entries: Ordered<'o, OverlayEntry>,
    pub(super) texts: Ordered<'o, OverlayText>,
}

impl<'o> Applying<'o> {
    /// What of `overlays`, in this order, applies to `audience`.
    ///
    /// # Errors
    /// [`TextsAreFolded`] when a text would have to be served.
    pub fn new(overlays: &'o [Overlay], audience: Option<&Audience>, purpose: Purpose) -> Result<Self, TextsAreFolded> {
        match purpose {
            Purpose::Serving => refuse_texts(overlays, audience)?,
            Purpose::Folding => {}
        }
        let entries = overlays.iter().enumerate().flat_map(|(overlay, document)| {
            let numbered = document.entries.iter().enumerate();
            numbered.map(move |(position, entry)| (Source { overlay, position }, entry))
        });
        let texts = overlays.iter().enumerate().flat_map(|(overlay, document)| {
            let numbered = document.texts.iter().enumerate();
            numbered.map(move |(position, text)| (Source { overlay, position }, text))
        });
        Ok(Self {
            overlays,
            entries: Ordered::new(entries.filter(|(_, entry)| applies(entry.scope.as_ref(), audience)), |entry| {
                &entry.selector
            }),
            texts: Ordered::new(texts.filter(|(_, text)| applies(text.scope.as_ref(), audience)), |text| {
                &text.selector
            }),
        })
    }

    /// The entries in the order in which they apply.
    pub fn entries(&self) -> impl Iterator<Item = (Source, &'o OverlayEntry)> {
        self.entries.steps.iter().copied()
    }

    /// The texts in the order in which they apply, after all entries.
    pub fn texts(&self) -> impl Iterator<Item = (Source, &'o OverlayText)> {
        self.texts.steps.iter().copied()
    }
}
