//! What changes no edition's state (D27): reschedule, lifecycle, embargo, description.

use serde_json::{Map, Value};

use super::change::Mark;
use super::draft::Draft;
use super::leaf::{EntryState, Lifecycle};
use super::operation::{Base, Done, Facts, Outcome, Times, Verdict};
use super::refusal::{Refusal, TransitionRefusal};
use crate::ids::{EditionId, ProductId};
use crate::instant::Instant;

/// Sets or clears the time of an embargoed edition's release. The edition keeps its state, and the time since when it
/// has it.
pub(super) fn reschedule(
    base: &Base<'_>,
    product: &ProductId,
    edition: &EditionId,
    release_at: Option<Instant>,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let expected = "embargoed, to be rescheduled";
    let entry = draft.entry(product, edition, expected)?;
    if entry.state != EntryState::Embargoed {
        let (product, edition, found) = (product.clone(), edition.clone(), entry.state);
        return Err(TransitionRefusal::WrongState { product, edition, found, expected }.into());
    }
    if entry.release_at == release_at {
        return Ok(already(Some(Mark::Embargoed)));
    }
    for entry in draft.edit(product)?.editions.iter_mut().filter(|entry| entry.edition_id == *edition) {
        entry.release_at = release_at;
    }
    Ok(Verdict::Change(Box::new(draft.finish(Some(Mark::Embargoed))?)))
}

/// Sets a product's lifecycle. A product becomes final only while nothing waits, since what waits was not compared with
/// the live content (*catalog* §6.5 item 5).
pub(super) fn set_lifecycle(
    base: &Base<'_>,
    product: &ProductId,
    lifecycle: Lifecycle,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let leaf = draft.leaf(product)?;
    if leaf.lifecycle == lifecycle {
        return Ok(already(None));
    }
    let waiting = leaf.editions.iter().filter(|entry| entry.state == EntryState::Embargoed);
    let embargoed: Vec<_> = waiting.map(|entry| entry.edition_id.clone()).collect();
    if lifecycle == Lifecycle::Final && !embargoed.is_empty() {
        return Err(TransitionRefusal::FinalWhilePending { product: product.clone(), embargoed }.into());
    }
    draft.edit(product)?.lifecycle = lifecycle;
    Ok(Verdict::Change(Box::new(draft.finish(None)?)))
}

/// Turns the embargo on or off. No leaf changes: what is embargoed is released by a release.
pub(super) fn embargo(base: &Base<'_>, on: bool) -> Verdict {
    if base.root.embargo == on {
        return already(None);
    }
    Verdict::Change(Box::new(Outcome { embargo: Some(on), ..Outcome::default() }))
}

/// Replaces the catalog's description.
pub(super) fn describe(base: &Base<'_>, section: &Map<String, Value>) -> Verdict {
    let same = base.root.extensions.get("statcat").is_some_and(|now| now.as_object() == Some(section));
    if same {
        return already(None);
    }
    Verdict::Change(Box::new(Outcome { statcat: Some(section.clone()), ..Outcome::default() }))
}

fn already(mark: Option<Mark>) -> Verdict {
    Verdict::Already(Done { mark, refused: Vec::new() })
}
