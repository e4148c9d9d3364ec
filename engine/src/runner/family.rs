//! The children of a step in the journal: starting them, looking at them, and becoming their owner.

use std::collections::HashMap;
use std::sync::Arc;

use engine_rules::crash;
use engine_rules::digest::digest_text;
use engine_rules::failure::Failure;
use engine_rules::recovery::{RunPlan, plan_run};
use engine_rules::state::{RunEvent, RunState};
use serde_json::json;
use sqlx::Row as _;

use super::Active;
use super::claim::{How, Standing, seize, take_queued, transition};
use crate::context::RunHandle;
use crate::control::RunControl;
use crate::db::patient;
use crate::engine::{Inner, Mutation, Outcome};
use crate::error::{EngineError, storage};
use crate::id::RunId;
use crate::slots::Slot;

/// The step whose children are meant, and who asks.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub parent: RunId,
    pub parent_no: i64,
    pub epoch: i64,
    /// The step's place, as text.
    pub position: String,
}

/// A child that is to be recorded.
#[derive(Debug)]
pub(crate) struct NewChild {
    pub index: u32,
    pub input: String,
    pub labels: String,
    pub key: Option<String>,
    pub reason: String,
}

/// A run that is this process's to carry out; nobody else here does.
pub(crate) struct Mine {
    active: Active,
    handle: RunHandle,
}

impl Mine {
    pub fn run_id(&self) -> RunId {
        self.handle.run_id
    }

    /// Carries the run out in a task of its own, and answers how it stands after that.
    pub async fn carry_out(self) -> Result<Outcome, EngineError> {
        let task = tokio::spawn(super::run_to_end(self.active, self.handle));
        task.await.map_err(|_| EngineError::Closed)?
    }
}

/// What became of children that were to be recorded.
pub(crate) enum Created {
    /// They are in the journal. Those without a key that another holds are this process's.
    Children(Vec<(u32, RunId, Option<Mine>)>),
    /// None is: the parent was cancelled before.
    ParentCancelled,
    /// None is: the parent has another owner, or is no longer at work.
    ParentFenced,
}

// ?1 the rows, ?2 the parent, ?3 its epoch, ?4 the step's place, ?5 the workflow, ?6 its version, ?7 the time. A row:
// 0 run_id, 1 index, 2 input, 3 input_digest, 4 labels, 5 concurrency_key, 6 reason, 7 whether one before it has its key.
// Whether the parent may start children is asked in the same statement, so that a cancel either finds them or prevents
// them.
const CREATE: &str = "INSERT INTO run (run_id, workflow, version, state, input, input_digest, labels, concurrency_key, \
     concurrency_policy, parent_run_id, parent_position, parent_index, actor, reason, owner_no, epoch, created_at_ms, \
     started_at_ms) \
     SELECT v->>0, ?5, ?6, CASE WHEN queued THEN 'queued' ELSE 'running' END, v->>2, v->>3, v->>4, v->>5, 'queue', \
     p.run_id, ?4, v->>1, p.actor, v->>6, CASE WHEN queued THEN NULL ELSE p.owner_no END, \
     CASE WHEN queued THEN 0 ELSE 1 END, ?7, CASE WHEN queued THEN NULL ELSE ?7 END \
     FROM (SELECT value AS v, value->>7 OR EXISTS (SELECT 1 FROM run h WHERE h.concurrency_key = value->>5 \
       AND h.state IN ('queued', 'running', 'waiting', 'paused', 'blocked')) AS queued FROM jsonb_each(?1)) \
     JOIN run p ON p.run_no = ?2 AND p.epoch = ?3 AND p.state IN ('running', 'waiting') \
       AND p.cancel_requested_at_ms IS NULL \
     WHERE true ON CONFLICT (parent_run_id, parent_position, parent_index) WHERE parent_index IS NOT NULL DO NOTHING \
     RETURNING run_id, run_no, parent_index, state";

/// Records `children` under `place`, all of them or none, each once. Those that may begin belong to this process.
///
/// # Errors
/// [`EngineError::Storage`]; nothing is recorded then.
pub(crate) async fn create(
    inner: &Arc<Inner>,
    place: &Place,
    workflow: &str,
    version: u32,
    children: Vec<NewChild>,
) -> Result<Created, EngineError> {
    let mut keys: HashMap<&str, ()> = HashMap::new();
    let mut rows = Vec::with_capacity(children.len());
    let mut mine = HashMap::with_capacity(children.len());
    for child in &children {
        // Two with one key cannot see each other within one statement.
        let stands_behind = child.key.as_deref().is_some_and(|key| keys.insert(key, ()).is_some());
        let run_id = RunId(inner.clock.new_id());
        rows.push(json!([
            run_id.to_string(),
            child.index,
            child.input,
            digest_text(&child.input),
            child.labels,
            child.key,
            child.reason,
            stands_behind,
        ]));
        // Before the row is there, so that nobody in this process ever finds it without somebody who works on it.
        let control = Arc::new(RunControl::default());
        mine.insert(run_id, (Active::enter(inner, run_id, control.clone())?, control));
    }
    let rows: Arc<str> = serde_json::Value::from(rows).to_string().into();
    let (at, named, now_ms) = (place.clone(), workflow.to_owned(), inner.clock.now_ms());
    crash::point("engine.child_rows.before");
    let (created, is_fenced) = inner
        .writer
        .exclusive("record the children", move |connection| {
            let (rows, at, named) = (rows.clone(), at.clone(), named.clone());
            Box::pin(async move {
                let created = sqlx::query(CREATE)
                    .bind(&*rows)
                    .bind(at.parent_no)
                    .bind(at.epoch)
                    .bind(at.position)
                    .bind(named)
                    .bind(version)
                    .bind(now_ms)
                    .fetch_all(&mut *connection)
                    .await?;
                let created = created
                    .iter()
                    .map(|row| {
                        let run_id: RunId = parse(&row.try_get::<String, _>(0)?)?;
                        let (run_no, index): (i64, u32) = (row.try_get(1)?, row.try_get(2)?);
                        Ok((index, run_id, run_no, row.try_get::<String, _>(3)? == RunState::Running.as_str()))
                    })
                    .collect::<Result<Vec<_>, sqlx::Error>>()?;
                let is_fenced: bool = sqlx::query_scalar(
                    "SELECT NOT EXISTS (SELECT 1 FROM run WHERE run_no = ? AND epoch = ? \
                     AND state IN ('running', 'waiting'))",
                )
                .bind(at.parent_no)
                .bind(at.epoch)
                .fetch_one(&mut *connection)
                .await?;
                Ok((created, is_fenced))
            })
        })
        .await?;
    crash::point("engine.child_rows.after");
    if is_fenced {
        return Ok(Created::ParentFenced);
    }
    if created.is_empty() {
        return Ok(Created::ParentCancelled);
    }
    let mut inputs: HashMap<u32, String> = children.into_iter().map(|child| (child.index, child.input)).collect();
    let begin = |(index, run_id, run_no, is_running): (u32, RunId, i64, bool)| {
        let (input, held) = (inputs.remove(&index), mine.remove(&run_id));
        let begun = is_running.then_some(()).and(input.zip(held)).map(|(input, (active, control))| {
            let workflow = workflow.to_owned();
            let handle = RunHandle {
                run_no,
                run_id,
                epoch: 1,
                workflow,
                version,
                input,
                fresh: true,
                crashed: false,
                resumed: false,
                control,
                recorded: None,
                slot: Slot::default(),
                carry_before_top: None,
            };
            Mine { active, handle }
        });
        (index, run_id, begun)
    };
    Ok(Created::Children(created.into_iter().map(begin).collect()))
}

/// How a child stands that its parent does not drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildStanding {
    /// Somebody works on it.
    AtWork,
    /// It began, and nobody works on it.
    Left,
    /// In line for its key.
    InLine,
    /// Its turn has come.
    MayBegin,
    /// A person holds it.
    Paused,
    /// A person must act.
    Blocked,
}

/// The children of `place` that have not ended.
///
/// # Errors
/// [`EngineError::Storage`], [`EngineError::Corrupt`].
pub(crate) async fn look(inner: &Inner, place: &Place) -> Result<Vec<(u32, RunId, ChildStanding)>, EngineError> {
    let rows = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "SELECT r.run_no, r.run_id, r.state, r.epoch, r.owner_no, o.owner_id, o.pid, o.host, o.lease_until_at_ms, \
             r.parent_index, r.state = 'queued' AND (r.concurrency_key IS NULL OR NOT EXISTS (SELECT 1 FROM run h \
               WHERE h.concurrency_key = r.concurrency_key \
               AND h.state IN ('queued', 'running', 'waiting', 'paused', 'blocked') \
               AND (h.state <> 'queued' OR h.run_no < r.run_no))) AS may_begin \
             FROM run r LEFT JOIN owner o ON o.owner_no = r.owner_no \
             WHERE r.parent_run_id = ? AND r.parent_position = ? AND r.parent_index IS NOT NULL \
             AND r.state IN ('queued', 'running', 'waiting', 'paused', 'blocked')",
        )
        .bind(place.parent.to_string())
        .bind(&place.position)
        .fetch_all(&inner.readers)
    });
    let rows = rows.await.map_err(storage("look at the children"))?;
    let mut probed = HashMap::new();
    rows.iter()
        .map(|row| {
            let (run_id, standing) = Standing::read(inner, row, false, &mut probed)?;
            let index = row.try_get("parent_index").map_err(storage("look at the children"))?;
            let may_begin: bool = row.try_get("may_begin").map_err(storage("look at the children"))?;
            let child = match standing.state {
                RunState::Queued if may_begin => ChildStanding::MayBegin,
                RunState::Queued => ChildStanding::InLine,
                RunState::Paused => ChildStanding::Paused,
                RunState::Blocked => ChildStanding::Blocked,
                RunState::Running | RunState::Waiting => match plan_run(standing.state, standing.owner) {
                    RunPlan::TakeOver => ChildStanding::Left,
                    RunPlan::Leave | RunPlan::Claim => ChildStanding::AtWork,
                },
                RunState::Succeeded | RunState::Failed | RunState::Cancelled => {
                    return Err(EngineError::Corrupt {
                        subject: format!("run {run_id}"),
                        found: standing.state.to_string(),
                        expected: "a state of a run that has not ended",
                    });
                }
            };
            Ok((index, run_id, child))
        })
        .collect()
}

/// How many children of `place` are in the journal, and the number that follows the last.
///
/// # Errors
/// [`EngineError::Storage`].
pub(crate) async fn count(inner: &Inner, place: &Place) -> Result<(usize, usize), EngineError> {
    let row = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "SELECT count(*), coalesce(max(parent_index) + 1, 0) FROM run \
             WHERE parent_run_id = ? AND parent_position = ? AND parent_index IS NOT NULL",
        )
        .bind(place.parent.to_string())
        .bind(&place.position)
        .fetch_one(&inner.readers)
    });
    let read = async {
        let row = row.await?;
        let (count, next): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok((usize::try_from(count).unwrap_or(0), usize::try_from(next).unwrap_or(0)))
    };
    read.await.map_err(storage("count the children"))
}

/// How the parent stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParentStanding {
    /// It has another owner, or is no longer at work.
    pub is_fenced: bool,
    /// A person ends it. Its children were told in the same transaction, so a child that ended by it is never seen
    /// without this.
    pub is_cancelled: bool,
}

/// How the parent of `place` stands.
///
/// # Errors
/// [`EngineError::Storage`].
pub(crate) async fn parent(inner: &Inner, place: &Place) -> Result<ParentStanding, EngineError> {
    let row = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "SELECT epoch <> ? OR state NOT IN ('running', 'waiting'), cancel_requested_at_ms IS NOT NULL FROM run \
             WHERE run_no = ?",
        )
        .bind(place.epoch)
        .bind(place.parent_no)
        .fetch_one(&inner.readers)
    });
    let read = async {
        let row = row.await?;
        Ok(ParentStanding { is_fenced: row.try_get(0)?, is_cancelled: row.try_get(1)? })
    };
    read.await.map_err(storage("look at the run"))
}

/// How a child ended, as the journal has it.
#[derive(Debug)]
pub(crate) struct EndedChild {
    pub index: u32,
    pub state: RunState,
    pub output: Option<String>,
    pub failure: Option<Failure>,
}

/// How the children from `first` up to, but not with, `end` ended, in their order.
///
/// # Errors
/// [`EngineError::Storage`], [`EngineError::Corrupt`].
pub(crate) async fn ends(
    inner: &Inner,
    place: &Place,
    first: usize,
    end: usize,
) -> Result<Vec<EndedChild>, EngineError> {
    let number = |number| i64::try_from(number).unwrap_or(i64::MAX);
    let rows = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "SELECT parent_index, run_id, state, output, failure FROM run WHERE parent_run_id = ? \
             AND parent_position = ? AND parent_index >= ? AND parent_index < ? ORDER BY parent_index",
        )
        .bind(place.parent.to_string())
        .bind(&place.position)
        .bind(number(first))
        .bind(number(end))
        .fetch_all(&inner.readers)
    });
    let rows = rows.await.map_err(storage("read the ends of the children"))?;
    rows.iter()
        .map(|row| {
            let read = || -> Result<_, sqlx::Error> {
                let texts: [Option<String>; 2] = [row.try_get("output")?, row.try_get("failure")?];
                Ok((row.try_get("parent_index")?, row.try_get("run_id")?, row.try_get("state")?, texts))
            };
            let (index, run_id, state, [output, failure]): (u32, String, String, _) =
                read().map_err(storage("read the ends of the children"))?;
            let corrupt = |found, expected| EngineError::Corrupt { subject: format!("run {run_id}"), found, expected };
            let state = match RunState::from_name(&state).filter(|state| state.is_terminal()) {
                Some(state) => state,
                None => return Err(corrupt(state, "a state in which a run has ended")),
            };
            let failure = failure.map(|text| serde_json::from_str(&text).map_err(|_| corrupt(text, "a failure")));
            Ok(EndedChild { index, state, output, failure: failure.transpose()? })
        })
        .collect()
}

/// The first children of `place` that are blocked, at most `most`, with what blocks them.
///
/// # Errors
/// [`EngineError::Storage`].
pub(crate) async fn blocked(
    inner: &Inner,
    place: &Place,
    most: u32,
) -> Result<Vec<(u32, RunId, Option<Failure>)>, EngineError> {
    let rows = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "SELECT parent_index, run_id, failure FROM run WHERE parent_run_id = ? AND parent_position = ? \
             AND parent_index IS NOT NULL AND state = 'blocked' \
             AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked') ORDER BY parent_index LIMIT ?",
        )
        .bind(place.parent.to_string())
        .bind(&place.position)
        .bind(most)
        .fetch_all(&inner.readers)
    });
    let read = async {
        let rows = rows.await?;
        rows.iter()
            .map(|row| {
                let failure: Option<String> = row.try_get(2)?;
                let failure = failure.and_then(|text| serde_json::from_str(&text).ok());
                Ok((row.try_get(0)?, parse(&row.try_get::<String, _>(1)?)?, failure))
            })
            .collect::<Result<Vec<_>, sqlx::Error>>()
    };
    read.await.map_err(storage("look at the children"))
}

/// The keys that `run` and those whose child it is stand for, each with the run.
///
/// # Errors
/// [`EngineError::Storage`].
pub(crate) async fn keys_of_family(inner: &Inner, run: RunId) -> Result<Vec<(String, RunId)>, EngineError> {
    let rows = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "WITH RECURSIVE up (run_id, parent_run_id, concurrency_key) AS (\
               SELECT run_id, parent_run_id, concurrency_key FROM run WHERE run_id = ? \
               UNION SELECT r.run_id, r.parent_run_id, r.concurrency_key FROM run r \
               JOIN up ON r.run_id = up.parent_run_id) \
             SELECT concurrency_key, run_id FROM up WHERE concurrency_key IS NOT NULL",
        )
        .bind(run.to_string())
        .fetch_all(&inner.readers)
    });
    let read = async {
        let rows = rows.await?;
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, parse(&row.try_get::<String, _>(1)?)?)))
            .collect::<Result<Vec<_>, sqlx::Error>>()
    };
    read.await.map_err(storage("read the keys of the run's family"))
}

/// Who let `run` go on last, and why.
///
/// # Errors
/// [`EngineError::Storage`].
pub(crate) async fn who_resumed(inner: &Inner, run: RunId) -> Result<Option<Mutation>, EngineError> {
    let row = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "SELECT actor, reason FROM audit WHERE run_id = ? AND action = 'resume' ORDER BY audit_no DESC LIMIT 1",
        )
        .bind(run.to_string())
        .fetch_optional(&inner.readers)
    });
    let read = async {
        let Some(row) = row.await? else { return Ok(None) };
        Ok(Some(Mutation { actor: row.try_get(0)?, reason: row.try_get(1)? }))
    };
    read.await.map_err(storage("read who resumed the run"))
}

/// Why a parent makes a child its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Adoption<'a> {
    /// Its turn has come, or nobody works on it.
    GoOn,
    /// This person let the parent go on, and its children with it.
    Resume(Option<&'a Mutation>),
    /// The family is to end: it cleans up.
    End,
}

/// Becomes the owner of a child that nobody works on: from the queue, from who left it, or from a person's hold. `None`
/// where its turn has not come, or somebody was faster.
///
/// # Errors
/// [`EngineError::Storage`], [`EngineError::Corrupt`].
pub(crate) async fn adopt(inner: &Arc<Inner>, run_id: RunId, why: Adoption<'_>) -> Result<Option<Mine>, EngineError> {
    // First of all, so that nobody else in this process takes it for nobody's.
    let Ok(active) = Active::enter(inner, run_id, Arc::default()) else { return Ok(None) };
    let standing = Standing::of(inner, run_id, true).await?;
    let (event, how, by) = match standing.state {
        RunState::Queued => {
            let taken = take_queued(inner, Some(run_id), 1).await?.pop();
            return Ok(taken.map(|handle| Mine::of(active, handle)));
        }
        RunState::Running | RunState::Waiting => match plan_run(standing.state, standing.owner) {
            RunPlan::TakeOver => (RunEvent::TakeOver, How::left_by(standing.owner), None),
            RunPlan::Leave | RunPlan::Claim => return Ok(None),
        },
        RunState::Paused | RunState::Blocked => match why {
            Adoption::GoOn => return Ok(None),
            Adoption::Resume(by) => (RunEvent::Resume, How::Resumed { crashed: false }, by),
            Adoption::End => (RunEvent::Resume, How::Released, None),
        },
        RunState::Succeeded | RunState::Failed | RunState::Cancelled => return Ok(None),
    };
    match seize(inner, run_id, &standing, transition(standing.state, event)?, how, by).await {
        Ok(handle) => Ok(Some(Mine::of(active, handle))),
        Err(
            EngineError::OwnedElsewhere { .. } | EngineError::AlreadyDriven { .. } | EngineError::WrongState { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Mine {
    fn of(active: Active, handle: RunHandle) -> Self {
        active.listen(handle.control.clone());
        Self { active, handle }
    }
}

fn parse(text: &str) -> Result<RunId, sqlx::Error> {
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}
