//! Entries and texts at work on artefacts (*edition* §5.3, §5.6).

use std::collections::{BTreeMap, BTreeSet};

use super::document::{EntryOperation, OverlayAnnotation, OverlayEntry, OverlayText, TextField, TextOperation};
use super::hook::MergeHook;
use super::order::{Applying, Source};
use super::target::{Named, Target, Texts, each_target};
use crate::sdmx::model::{Annotation, Artefact, UrnText};
use crate::sdmx::urn::item_urn;

/// What became of one entry or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryEffect {
    /// Which one.
    pub source: Source,
    /// How many artefacts and items it selected; a text passes over those without a name.
    pub selected: u64,
    /// How many of them it changed, at its turn.
    pub changed: u64,
}

/// Artefacts after the overlays.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The artefacts, in the order in which they came.
    pub artefacts: Vec<Artefact>,
    /// The URNs of those that are not what they were.
    pub changed: BTreeSet<UrnText>,
    /// What became of each entry, in the order in which they applied.
    pub entries: Vec<EntryEffect>,
    /// What became of each text, in the order in which they applied.
    pub texts: Vec<EntryEffect>,
}

/// Why overlays cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// A text removes the last language of a name.
    #[error(
        "edition §5.6: texts[{position}] of overlay {overlay:?} removes {lang:?}, the last language of the name of {urn}; \
         SDMX requires a name"
    )]
    LastName {
        /// The overlay's id.
        overlay: String,
        /// Which text, counted from 0.
        position: usize,
        /// The language.
        lang: String,
        /// The artefact or item.
        urn: UrnText,
    },
}

impl ApplyError {
    /// The stable name of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::LastName { .. } => "catalog.overlay_last_name",
        }
    }

    /// What to do instead.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::LastName { .. } => {
                "set another language before it, with the same selector: what is equally specific applies in document \
                 order"
                    .to_owned()
            }
        }
    }
}

impl Applying<'_> {
    /// Applies every entry and then every text to `artefacts`. Whatever an entry does not act on stays as it was. A
    /// type without a hook in `hooks` is replaced by `set`.
    ///
    /// # Errors
    /// [`ApplyError::LastName`]; nothing is handed back then.
    pub fn apply(
        &self,
        artefacts: Vec<Artefact>,
        hooks: &BTreeMap<String, MergeHook<'_>>,
    ) -> Result<Applied, ApplyError> {
        let effect = |source| EntryEffect { source, selected: 0, changed: 0 };
        let mut applied = Applied {
            artefacts,
            changed: BTreeSet::new(),
            entries: self.entries().map(|(source, _)| effect(source)).collect(),
            texts: self.texts().map(|(source, _)| effect(source)).collect(),
        };
        let Applied { artefacts, changed, entries, texts } = &mut applied;
        for artefact in artefacts {
            if self.change(artefact, hooks, entries, texts)? {
                changed.insert(artefact.urn());
            }
        }
        Ok(applied)
    }

    /// Changes one artefact and the items in it. Whether it is another afterwards.
    fn change(
        &self,
        artefact: &mut Artefact,
        hooks: &BTreeMap<String, MergeHook<'_>>,
        entry_effects: &mut [EntryEffect],
        text_effects: &mut [EntryEffect],
    ) -> Result<bool, ApplyError> {
        let urn = artefact.urn();
        let common = artefact.common();
        let (agency, id, version) = (common.maintainer.clone(), common.id.clone(), common.version.clone());
        let key = (agency.as_str(), id.as_str(), version.as_str());
        let (entries, texts) = (self.entries.within(key), self.texts.within(key));
        let (mut reached, mut reached_texts, mut changed) = (Vec::new(), Vec::new(), false);
        each_target(artefact, |target| {
            let Target { named, annotations, texts: held } = target;
            entries.reach(&named, &mut reached);
            if !reached.is_empty() {
                let before = annotations.clone();
                for at in &reached {
                    let (_, entry) = self.entries.step(*at);
                    entry_effects[*at].selected += 1;
                    entry_effects[*at].changed += u64::from(annotate(annotations, entry, hooks));
                }
                changed |= *annotations != before;
            }
            let Some(held) = held else { return Ok(()) };
            texts.reach(&named, &mut reached_texts);
            if !reached_texts.is_empty() {
                let before = (held.name.clone(), held.description.clone());
                let Texts { name, description } = held;
                for at in &reached_texts {
                    let (source, text) = self.texts.step(*at);
                    text_effects[*at].selected += 1;
                    let mut to = Texts { name, description };
                    let has_changed = spell(&mut to, text).map_err(|LastLanguage| ApplyError::LastName {
                        overlay: self.overlays[source.overlay].id.clone(),
                        position: source.position,
                        lang: text.lang.clone(),
                        urn: urn_of(&urn, &named),
                    })?;
                    text_effects[*at].changed += u64::from(has_changed);
                }
                changed |= (&*name, &*description) != (&before.0, &before.1);
            }
            Ok(())
        })?;
        Ok(changed)
    }
}

fn urn_of(artefact: &str, named: &Named<'_>) -> UrnText {
    match named.item {
        None => artefact.to_owned(),
        // The last name is that of a URN.
        Some(item) => item_urn(artefact, named.package, named.classes.last().unwrap_or(&""), item),
    }
}

/// Does to `annotations` what the entry says. Whether they are others afterwards.
fn annotate(annotations: &mut Vec<Annotation>, entry: &OverlayEntry, hooks: &BTreeMap<String, MergeHook<'_>>) -> bool {
    let is_meant = |annotation: &Annotation| annotation.r#type.as_ref() == Some(&entry.annotation_type);
    match &entry.operation {
        EntryOperation::Remove => {
            let before = annotations.len();
            annotations.retain(|annotation| !is_meant(annotation));
            annotations.len() != before
        }
        EntryOperation::Add(annotation) => {
            annotations.push(written(annotation, &entry.annotation_type));
            true
        }
        EntryOperation::Set(annotation) => {
            let before = annotations.clone();
            let (dropped, kept): (Vec<_>, Vec<_>) = annotations.drain(..).partition(is_meant);
            *annotations = kept;
            let new = written(annotation, &entry.annotation_type);
            match hooks.get(&entry.annotation_type) {
                Some(hook) => annotations.extend((hook.merge)(&dropped, new)),
                None => annotations.push(new),
            }
            *annotations != before
        }
    }
}

/// The annotation as the model has it: its type is the entry's.
fn written(annotation: &OverlayAnnotation, annotation_type: &str) -> Annotation {
    let OverlayAnnotation { id, title, value, text } = annotation.clone();
    Annotation { id, title, r#type: Some(annotation_type.to_owned()), urls: Vec::new(), text, value }
}

/// The last language of a name was to go.
struct LastLanguage;

/// Does to a name or a description what the text says. Whether it is another afterwards.
fn spell(texts: &mut Texts<'_>, text: &OverlayText) -> Result<bool, LastLanguage> {
    let languages = match text.field {
        TextField::Name => &mut *texts.name,
        TextField::Description => &mut *texts.description,
    };
    match &text.operation {
        TextOperation::Set(new) => Ok(languages.insert(text.lang.clone(), new.clone()).as_ref() != Some(new)),
        TextOperation::Remove if !languages.contains_key(&text.lang) => Ok(false),
        TextOperation::Remove if text.field == TextField::Name && languages.len() == 1 => Err(LastLanguage),
        TextOperation::Remove => Ok(languages.remove(&text.lang).is_some()),
    }
}
