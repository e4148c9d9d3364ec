//! A replay: what the origin recorded before its step is carried over when it is asked for, and not carried out.
//!
//! What is carried over is decided in [`engine_rules::replay`]; here it is written.

use std::collections::BTreeSet;

use engine_rules::context::Interrupt;
use engine_rules::crash;
use engine_rules::failure::Failure;
use engine_rules::position::Position;
use engine_rules::replay::{Carrying, Held, Mint, Verdict};
use engine_rules::state::StepState;
use serde_json::Value;

use super::{Ask, End, EngineContext, describe, kind, operator, tells_of_cancel};
use crate::engine::Inner;
use crate::id::RunId;
use crate::journal::Recorded;

/// What a workflow is run for.
#[derive(Debug)]
pub(crate) enum Mode {
    /// To be carried out and recorded.
    Live,
    /// To see whether it asks for what is recorded. Nothing is written or carried out.
    Rehearsal,
    /// To see what a replay would carry over. Nothing is written or carried out.
    Plan(Planning),
}

impl Mode {
    pub fn is_live(&self) -> bool {
        match self {
            Self::Live => true,
            Self::Rehearsal | Self::Plan(_) => false,
        }
    }
}

/// What a replay would do, as far as that can be told beforehand.
#[derive(Debug, Default)]
pub(crate) struct Planning {
    /// Each step's label, and the run whose result is carried over.
    pub steps: Vec<(String, Option<String>)>,
    /// The place in the origin of the first thing that is asked for in another way.
    pub differs_at_top: Option<u32>,
    /// The place in the origin of the section that was carried over last.
    pub section_at_top: Option<u32>,
    stood_in: BTreeSet<usize>,
}

/// The origin of a replay.
#[derive(Debug)]
pub(crate) struct Carry {
    origin_no: i64,
    origin: RunId,
    carrying: Carrying,
    rows: Vec<Recorded>,
}

/// What became of a carrying over.
enum Copied {
    Done,
    /// Another owner took the run over.
    Fenced,
    /// The origin was purged.
    Gone,
}

impl Carry {
    /// Carries over what `rows`, the history of the run `origin`, hold before `before_top`.
    pub fn new(origin_no: i64, origin: RunId, rows: Vec<Recorded>, before_top: u32, mints: &[Mint]) -> Self {
        let held = |row: &Recorded| Held {
            position: row.position,
            kind: row.kind.clone(),
            name: row.name.clone(),
            section: row.section.clone(),
            input_digest: row.input_digest.clone(),
            has_result: row.state.is_recorded() && !row.failure.as_ref().is_some_and(tells_of_cancel),
        };
        let carrying = Carrying::new(rows.iter().map(held).collect(), before_top, mints);
        Self { origin_no, origin, carrying, rows }
    }

    /// Who really made the result: the origin, or the run that the origin itself carried it over from.
    fn maker(&self, row: &Recorded) -> String {
        row.carried_from.clone().unwrap_or_else(|| self.origin.to_string())
    }

    /// The rows that are carried over with the one at `index`, as they stand in the run that begins them at `top`.
    fn carried(&self, index: usize, top: u32) -> Vec<Recorded> {
        let rows: Vec<usize> = match self.rows.get(index).map(|row| row.kind.as_str()) {
            Some(kind::SECTION) => self.carrying.section(index).collect(),
            Some(_) | None => vec![index],
        };
        let rows = rows.into_iter().filter_map(|row| self.rows.get(row));
        let moved = |row: &Recorded| Recorded {
            position: Position { top, ..row.position },
            carried_from: Some(self.maker(row)),
            ..row.clone()
        };
        rows.map(moved).collect()
    }
}

impl EngineContext {
    /// What becomes of `ask` in a replay. Asked for everything in turn, also for what is recorded, so that a replay that
    /// was interrupted goes on as it began. A section stands for its steps, and a clean-up is never carried over.
    pub(super) fn verdict(&mut self, ask: &Ask<'_>) -> Option<Verdict> {
        let is_within = self.section.is_some() && ask.kind != kind::SECTION;
        if is_within || self.cleaning {
            return None;
        }
        self.carry.as_mut().map(|carry| carry.carrying.asked(ask.kind, ask.name, &ask.digest))
    }

    /// The result that `verdict` carries over for something that is not recorded; `None` where it is to be carried out.
    pub(super) async fn carry_over(
        &mut self,
        ask: &Ask<'_>,
        verdict: Option<Verdict>,
    ) -> Result<Option<Recorded>, Interrupt> {
        let Some(verdict) = verdict else { return Ok(None) };
        if matches!(self.mode, Mode::Plan(_)) {
            return Ok(self.plan(ask, verdict));
        }
        let index = match verdict {
            Verdict::Carry(index) => index,
            Verdict::Differs(index) => {
                return match self.carry.as_ref().and_then(|carry| carry.carrying.used_up_after(index)).cloned() {
                    None => Ok(None),
                    Some(mint) => {
                        let label = self.label(ask.name);
                        let failure = used_up(&mint, &label);
                        Err(self.block(self.new_write(), failure, Some(label)).await)
                    }
                };
            }
            Verdict::Mint(_) | Verdict::New | Verdict::Over => return Ok(None),
        };
        let top = self.section.map_or(self.next_top, |section| section.top);
        let Some(carry) = self.carry.as_ref() else { return Ok(None) };
        let rows = carry.carried(index, top);
        let Some(from) = carry.rows.get(index).map(|row| row.position) else { return Ok(None) };
        let origin = (carry.origin_no, carry.origin);
        crash::point("engine.result.before");
        match copy(&self.inner, (self.run.run_no, self.run.epoch), origin, from, rows.len(), top).await {
            Ok(Copied::Done) => {}
            Ok(Copied::Fenced) => return Err(self.stop(End::Fenced)),
            Ok(Copied::Gone) => {
                self.carry = None;
                return Ok(None);
            }
            Err(error) => return Err(self.stop(End::Engine(error))),
        }
        crash::point("engine.result.after");
        // Nothing was at work when the process died.
        self.crashed = false;
        self.recorded = rows.into();
        Ok(self.recorded.pop_front())
    }

    /// Notes what becomes of `ask`, and answers what stands for its result, so that the plan can go on.
    fn plan(&mut self, ask: &Ask<'_>, verdict: Verdict) -> Option<Recorded> {
        let label = if ask.kind == kind::SECTION { ask.name.to_owned() } else { self.label(ask.name) };
        let top = self.section.map_or(self.next_top, |section| section.top);
        let carry = self.carry.as_ref()?;
        let Mode::Plan(planning) = &mut self.mode else { return None };
        let stands_in = match verdict {
            Verdict::Carry(index) => {
                let rows = carry.carried(index, top);
                if ask.kind == kind::SECTION {
                    planning.section_at_top = carry.rows.get(index).map(|row| row.position.top);
                }
                planning.steps.push((label, rows.first().and_then(|row| row.carried_from.clone())));
                self.recorded = rows.into();
                return self.recorded.pop_front();
            }
            Verdict::Mint(index) => Some(index),
            Verdict::Differs(index) => {
                planning.differs_at_top = carry.rows.get(index).map(|row| row.position.top);
                Some(index)
            }
            Verdict::New | Verdict::Over => {
                let fits = |row: &Recorded| row.kind == ask.kind && row.name == ask.name && row.section.is_none();
                (0..carry.rows.len()).find(|index| fits(&carry.rows[*index]) && !planning.stood_in.contains(index))
            }
        };
        planning.steps.push((label, None));
        let index = stands_in?;
        planning.stood_in.insert(index);
        // What failed may succeed this time: what follows cannot be told.
        let row = carry.rows.get(index).filter(|row| row.state == StepState::Succeeded && row.kind != kind::SECTION)?;
        let output = match (verdict, &row.output) {
            (Verdict::Mint(_), Some(output)) => Some(with_new_ids(output, &self.inner)),
            (_, output) => output.clone(),
        };
        Some(Recorded { output, ..row.clone() })
    }

    /// Stops where a run that is only looked at asks for what is not recorded.
    pub(super) fn rehearsed(&mut self, ask: &Ask<'_>) -> Interrupt {
        let section = self.section.map(|section| section.name);
        let asks_for = describe(ask.kind, section, self.position(), ask.name);
        self.stop(End::Rehearsed { asks_for })
    }
}

/// `output` with other ids in place of its own, as if it were minted anew.
fn with_new_ids(output: &str, inner: &Inner) -> String {
    fn replace(value: &mut Value, inner: &Inner) {
        match value {
            Value::String(text) if text.parse::<RunId>().is_ok() => *text = inner.clock.new_id().to_string(),
            Value::Array(items) => items.iter_mut().for_each(|item| replace(item, inner)),
            Value::Object(members) => members.values_mut().for_each(|member| replace(member, inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let Ok(mut value) = serde_json::from_str(output) else { return output.to_owned() };
    replace(&mut value, inner);
    value.to_string()
}

// The rows at one place of the origin, a step or a whole section, as rows of the run. $1 the run, $2 its epoch, $3 the
// origin, $4 its id, $5 and $6 top and iteration there, $7 top here, $8 the time.
const COPY: &str = "INSERT INTO step (run_no, top, iteration, sub, kind, name, section, activity, state, input_digest, \
     input, output, failure, attempt, forgiven, carried_from, epoch, first_started_at_ms, started_at_ms, ended_at_ms, \
     duration_us) SELECT r.run_no, $7, s.iteration, s.sub, s.kind, s.name, s.section, s.activity, s.state, \
     s.input_digest, s.input, s.output, s.failure, 1, 0, coalesce(s.carried_from, $4), r.epoch, $8, $8, $8, \
     s.duration_us FROM step s JOIN run r ON r.run_no = $1 AND r.epoch = $2 AND r.state IN ('running', 'waiting') \
     WHERE s.run_no = $3 AND s.top = $5 AND s.iteration = $6 AND s.state IN ('succeeded', 'failed')";

/// Records as the run's what the origin holds at `from`, all `rows` rows of it or none.
async fn copy(
    inner: &Inner,
    (run_no, epoch): (i64, i64),
    (origin_no, origin): (i64, RunId),
    from: Position,
    rows: usize,
    top: u32,
) -> Result<Copied, crate::EngineError> {
    let now_ms = inner.clock.now_ms();
    inner
        .writer
        .exclusive("carry a result over", move |connection| {
            Box::pin(async move {
                let is_there: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM step WHERE run_no = ? AND top = ? AND iteration = ? \
                     AND state IN ('succeeded', 'failed')",
                )
                .bind(origin_no)
                .bind(from.top)
                .bind(from.iteration)
                .fetch_one(&mut *connection)
                .await?;
                if usize::try_from(is_there) != Ok(rows) {
                    return Ok(Copied::Gone);
                }
                let copied = sqlx::query(COPY)
                    .bind(run_no)
                    .bind(epoch)
                    .bind(origin_no)
                    .bind(origin.to_string())
                    .bind(from.top)
                    .bind(from.iteration)
                    .bind(top)
                    .bind(now_ms)
                    .execute(connection)
                    .await?;
                Ok(if copied.rows_affected() == 0 { Copied::Fenced } else { Copied::Done })
            })
        })
        .await
}

fn used_up(mint: &Mint, label: &str) -> Failure {
    let Mint { minting_step, used_up_at_step } = mint;
    operator(
        "engine.identity_used_up",
        format!(
            "{label} is asked for with another input than the origin's, but what {minting_step} minted was carried over, \
             and {used_up_at_step} of the origin has used it up"
        ),
        &format!(
            "end this run and replay from {used_up_at_step} or an earlier step, so that {minting_step} mints anew: jobctl \
             runs cancel RUN --reason …"
        ),
    )
}

/// The code of [`section_differs`].
pub(crate) const SECTION_DIFFERS: &str = "engine.carried_section_differs";

/// The failure of a replay whose workflow asks, within a section that was carried over, for something else.
pub(super) fn section_differs(
    section: &str,
    maker: &str,
    carry: Option<&Carry>,
    position: Position,
    what: &str,
) -> Failure {
    let origin = carry.map_or_else(|| maker.to_owned(), |carry| carry.origin.to_string());
    operator(
        SECTION_DIFFERS,
        format!(
            "the section {section} was carried over whole from run {maker}, and at {position} the workflow does not ask for \
             what it holds: {what}"
        ),
        &format!(
            "end this run and replay from the section, so that it is carried out anew: jobctl runs cancel RUN --reason …; \
             jobctl runs replay {origin} --from {section} --reason …"
        ),
    )
}
