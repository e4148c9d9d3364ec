//! Builds the unsealed edition into which overlays are folded (*edition* §5.6).

use std::cell::RefCell;
use std::collections::BTreeMap;

use catalog_rules::contracts::fold::{FoldStepInput, FoldStepOutput};
use catalog_rules::ids::ProductId;
use catalog_rules::overlay::{Applied, Applying, Audience, EntryEffect, Overlay, Purpose, TextsAreFolded};
use catalog_rules::sdmx::model::Artefact;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition, Failure};

use super::build::{BuildError, still_live};
use super::overlays::{OverlaysError, recorded};
use super::{PublishDeps, recorded_as};
use crate::edition::{self, EditionError, FoldOrder};

/// How many artefacts and entries are recorded one by one.
const TOLD: usize = 100;

/// Why overlays were not folded.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// An overlay cannot be used, or is not the one that the run began with.
    #[error(transparent)]
    Overlays(#[from] OverlaysError),
    /// No edition of the product is live.
    #[error("no edition of product {product_id} is live, so there is none to fold an overlay into (edition §5.6)")]
    NothingLive {
        /// The product.
        product_id: ProductId,
    },
    /// A text was refused although folding applies texts.
    #[error(transparent)]
    Texts(#[from] TextsAreFolded),
    /// The edition could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl ActivityError for FoldError {
    fn code(&self) -> &'static str {
        match self {
            Self::Overlays(error) => error.code(),
            Self::NothingLive { .. } => "catalog.nothing_live",
            Self::Texts(_) => "catalog.overlay_texts",
            Self::Build(error) => error.code(),
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Overlays(error) => error.disposition(),
            Self::NothingLive { .. } | Self::Texts(_) => Disposition::Terminal,
            Self::Build(error) => error.disposition(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Overlays(error) => error.hint(),
            Self::NothingLive { product_id } => {
                Some(format!("publish the product first: jobctl run publish --product {product_id}"))
            }
            Self::Texts(error) => Some(error.fix()),
            Self::Build(BuildError::StaleBase { product_id, .. }) => Some(format!(
                "fold again, into what is live now: jobctl run fold --product {product_id} --overlay FILE --reason …"
            )),
            Self::Build(error) => error.hint(),
        }
    }

    fn to_failure(&self) -> Failure {
        match self {
            Self::Build(error) => Failure { hint: self.hint().or(error.to_failure().hint), ..error.to_failure() },
            Self::Overlays(_) | Self::NothingLive { .. } | Self::Texts(_) => Failure {
                code: self.code().to_owned(),
                message: self.to_string(),
                disposition: self.disposition(),
                hint: self.hint(),
            },
        }
    }
}

/// Builds the unsealed edition of the recorded id: the folded edition's store with every artefact that an entry changes
/// replaced, over the same data files. A type without a merge hook is replaced by `set`; this program has no hooks.
///
/// Overlays that cannot be applied, and those that change nothing, are refused before anything in the catalog changes.
/// What an earlier attempt left of this edition is discarded and built again, so repeats are safe.
///
/// # Errors
/// [`FoldError`].
pub fn fold(deps: &PublishDeps, ctx: &ActivityContext, input: FoldStepInput) -> Result<FoldStepOutput, FoldError> {
    let FoldStepInput { product_id, edition_id, previous, overlays, audience } = input;
    let Some(previous) = previous else { return Err(FoldError::NothingLive { product_id }) };
    still_live(deps, &product_id, Some(&previous))?;
    let product =
        deps.product(&product_id).map_err(|source| BuildError::Folder { product_id: product_id.clone(), source })?;
    let overlays = recorded(&overlays)?;
    let audience = audience.map(Audience::new);
    let applying = Applying::new(&overlays, audience.as_ref(), Purpose::Folding)?;
    let output = RefCell::new(None);
    let change = |artefacts: Vec<Artefact>| {
        let refused = |code: &str, message: String, hint: String| Failure {
            code: code.to_owned(),
            message,
            disposition: Disposition::Terminal,
            hint: Some(hint),
        };
        let applied = applying
            .apply(artefacts, &BTreeMap::new())
            .map_err(|error| refused(error.code(), error.to_string(), error.fix()))?;
        if applied.changed.is_empty() {
            let message = format!(
                "edition §5.6: no entry changes anything in edition {previous} of product {product_id}, so there is nothing \
                 to fold: it would be an edition of the same content"
            );
            let hint = "the overlay may be for another product, or folded already: jobctl overlay check FILE names what \
                        can have no effect";
            return Err(refused("catalog.overlay_changes_nothing", message, hint.to_owned()));
        }
        output.replace(Some(told(&overlays, &applied)));
        let Applied { mut artefacts, changed, entries: _, texts: _ } = applied;
        artefacts.retain(|artefact| changed.contains(&artefact.urn()));
        Ok(artefacts)
    };
    let order = FoldOrder {
        product_dir: product.path(),
        product_id: &product_id,
        edition_id: &edition_id,
        previous: &previous,
        change: &change,
    };
    match edition::fold(&deps.tools(ctx), &order) {
        Ok(folded) => {
            let told = output.borrow_mut().take().unwrap_or_default();
            Ok(FoldStepOutput { changed: folded.replaced, ..told })
        }
        Err(EditionError::OtherUnsealed { product, found, wanted }) => {
            let marked = recorded_as(deps, &product_id, &found).map_err(BuildError::from)?;
            Err(FoldError::Build(match marked {
                Some(mark) => BuildError::ManifestLost { product_id, edition: found, mark },
                None => EditionError::OtherUnsealed { product, found, wanted }.into(),
            }))
        }
        Err(error) => Err(FoldError::Build(error.into())),
    }
}

/// What the run records of what was applied.
fn told(overlays: &[Overlay], applied: &Applied) -> FoldStepOutput {
    let name = |list: &str, effect: &EntryEffect| {
        format!("{list}[{}] of {}", effect.source.position, overlays[effect.source.overlay].id)
    };
    let of = |list: &'static str, effects: &[EntryEffect]| -> Vec<String> {
        effects.iter().filter(|effect| effect.selected == 0).map(|effect| name(list, effect)).collect()
    };
    let mut untargeted = of("entries", &applied.entries);
    untargeted.extend(of("texts", &applied.texts));
    let without_target = untargeted.len() as u64;
    untargeted.truncate(TOLD);
    FoldStepOutput {
        changed: applied.changed.len() as u64,
        artefacts: applied.changed.iter().take(TOLD).cloned().collect(),
        applied: (applied.entries.len() + applied.texts.len()) as u64,
        without_target,
        untargeted,
    }
}
