//! One transaction as one string of statements: each hand-off to SQLite's thread costs as much as the commit itself, so
//! all rows go in as JSON arrays, and only what did not pass comes back.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;

use engine_rules::failure::Failure;
use engine_rules::position::Position;
use engine_rules::state::RunState;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::rows::{AttemptWrite, BeatWrite, ClaimedRun, NewRun, RunChange, RunWrite, StartAnswer, StepWrite, Take};
use crate::id::RunId;

/// What became of a batch, in the order of its requests.
pub(crate) struct Done {
    pub starts: Vec<StartAnswer>,
    pub passed: Vec<bool>,
    pub taken: Vec<ClaimedRun>,
}

/// The states of a run that is not over: the text of a partial index, so it must stand exactly so in a query.
macro_rules! live {
    () => {
        "('queued', 'running', 'waiting', 'paused', 'blocked')"
    };
}

/// The states in which an owner may write.
macro_rules! owned {
    () => {
        "('running', 'waiting')"
    };
}

// Parameters are written $N, not ?N: a statement whose numbers have gaps makes sqlx count arguments for the gaps, and
// those behind are then left unbound, without an error.
const BEGIN: &str = "BEGIN IMMEDIATE;";
const COMMIT: &str = "COMMIT;";

// $1 the new runs, $2 the time. A row: 0 index, 1 run_id, 2 workflow, 3 version, 4 detached, 5 input, 6 input_digest,
// 7 labels, 8 concurrency_key, 9 concurrency_policy, 10 parent_run_id, 11 origin_run_id, 12 origin_step, 13 schedule,
// 14 actor, 15 reason, 16 idempotency_key, 17 idempotency_window_ms, 18 owner_no.
const STARTS: &str = concat!(
    "SELECT 1, v->>0, i.run_id, i.input_digest, NOT EXISTS (SELECT 1 FROM run r WHERE r.run_id = i.run_id) FROM (SELECT value AS v FROM jsonb_each($1)) ",
    "JOIN idempotency i ON i.workflow = v->>2 AND i.key = v->>16 WHERE i.expires_at_ms > $2;",
    "SELECT 2, v->>0, (SELECT r.run_id FROM run r WHERE r.concurrency_key = v->>8 AND r.state IN ",
    live!(),
    " ORDER BY r.run_no LIMIT 1) AS holder FROM (SELECT value AS v FROM jsonb_each($1)) ",
    "WHERE v->>9 = 'forbid' AND holder IS NOT NULL;",
    "INSERT INTO run (run_id, workflow, version, state, input, input_digest, labels, concurrency_key, ",
    "concurrency_policy, parent_run_id, origin_run_id, origin_step, schedule, actor, reason, idempotency_key, ",
    "owner_no, epoch, created_at_ms, started_at_ms) ",
    "SELECT v->>1, v->>2, v->>3, CASE WHEN queued THEN 'queued' ELSE 'running' END, v->>5, v->>6, v->>7, v->>8, v->>9, ",
    "v->>10, v->>11, v->>12, v->>13, v->>14, v->>15, v->>16, CASE WHEN queued THEN NULL ELSE v->>18 END, ",
    "CASE WHEN queued THEN 0 ELSE 1 END, $2, CASE WHEN queued THEN NULL ELSE $2 END ",
    "FROM (SELECT v, held, held OR v->>4 AS queued FROM (SELECT value AS v, ",
    "EXISTS (SELECT 1 FROM run r WHERE r.concurrency_key = value->>8 AND r.state IN ",
    live!(),
    ") AS held FROM jsonb_each($1))) ",
    "WHERE NOT (held AND v->>9 = 'forbid') AND NOT EXISTS (SELECT 1 FROM idempotency i ",
    "WHERE i.workflow = v->>2 AND i.key = v->>16 AND i.expires_at_ms > $2) ",
    "RETURNING 3, run_id, run_no, state;",
    "INSERT OR REPLACE INTO idempotency (workflow, key, run_id, input_digest, created_at_ms, expires_at_ms) ",
    "SELECT v->>2, v->>16, v->>1, v->>6, $2, $2 + (v->>17) FROM (SELECT value AS v FROM jsonb_each($1)) ",
    "JOIN run r ON r.run_id = v->>1 WHERE v->>16 IS NOT NULL;",
);

// $3 the fences. A row: 0 index, 1 run_no, 2 epoch. What comes back did not pass.
const FENCES: &str = concat!(
    "SELECT 4, v->>0 FROM (SELECT value AS v FROM jsonb_each($3)) LEFT JOIN run r ON r.run_no = v->>1 ",
    "AND r.epoch = v->>2 AND r.state IN ",
    owned!(),
    " WHERE r.run_no IS NULL;"
);

// $4 the sections that start again. A row: 0 run_no, 1 epoch, 2 top.
const ABANDONS: &str = concat!(
    "UPDATE step SET state = 'abandoned' FROM (SELECT value AS v FROM jsonb_each($4)) JOIN run r ON r.run_no = v->>0 ",
    "AND r.epoch = v->>1 AND r.state IN ",
    owned!(),
    " WHERE step.run_no = v->>0 AND step.top >= v->>2 AND step.state <> 'abandoned';"
);

// $5 the attempts. A row: 0 run_no, 1 epoch, 2 top, 3 iteration, 4 sub, 5 attempt, 6 outcome, 7 failure,
// 8 started_at_ms, 9 ended_at_ms, 10 duration_us.
const ATTEMPTS: &str = concat!(
    "INSERT INTO attempt (run_no, top, iteration, sub, attempt, outcome, failure, epoch, started_at_ms, ended_at_ms, ",
    "duration_us) SELECT v->>0, v->>2, v->>3, v->>4, v->>5, v->>6, v->>7, v->>1, v->>8, v->>9, v->>10 ",
    "FROM (SELECT value AS v FROM jsonb_each($5)) JOIN run r ON r.run_no = v->>0 AND r.epoch = v->>1 AND r.state IN ",
    owned!(),
    ";"
);

// $6 the steps. A row: 0 run_no, 1 epoch, 2 top, 3 iteration, 4 sub, 5 kind, 6 name, 7 section, 8 activity, 9 state,
// 10 input_digest, 11 input, 12 output, 13 failure, 14 attempt, 15 forgiven, 16 next_attempt_at_ms, 17 started_at_ms,
// 18 ended_at_ms, 19 duration_us.
const STEPS: &str = concat!(
    "INSERT INTO step (run_no, epoch, top, iteration, sub, kind, name, section, activity, state, input_digest, input, ",
    "output, failure, attempt, forgiven, next_attempt_at_ms, first_started_at_ms, started_at_ms, ended_at_ms, ",
    "duration_us) SELECT v->>0, v->>1, v->>2, v->>3, v->>4, v->>5, v->>6, v->>7, v->>8, v->>9, v->>10, v->>11, ",
    "v->>12, v->>13, v->>14, v->>15, v->>16, v->>17, v->>17, v->>18, v->>19 ",
    "FROM (SELECT value AS v FROM jsonb_each($6)) JOIN run r ON r.run_no = v->>0 AND r.epoch = v->>1 AND r.state IN ",
    owned!(),
    " WHERE true ON CONFLICT (run_no, top, iteration, sub) DO UPDATE SET epoch = excluded.epoch, ",
    "state = excluded.state, output = excluded.output, failure = excluded.failure, attempt = excluded.attempt, ",
    "forgiven = excluded.forgiven, next_attempt_at_ms = excluded.next_attempt_at_ms, ",
    "started_at_ms = excluded.started_at_ms, ended_at_ms = excluded.ended_at_ms, duration_us = excluded.duration_us;"
);

// $11 the signals that steps take. A row: 0 run_no, 1 epoch, 2 signal_no, 3 the step's place, 4 the time.
const SIGNALS: &str = concat!(
    "UPDATE signal SET taken_by = v->>3, taken_at_ms = v->>4 FROM (SELECT value AS v FROM jsonb_each($11)) ",
    "JOIN run r ON r.run_no = v->>0 AND r.epoch = v->>1 AND r.state IN ",
    owned!(),
    " WHERE signal.signal_no = v->>2 AND signal.run_no = v->>0 AND signal.taken_at_ms IS NULL;"
);

// $12 the signs of life. A row: 0 run_no, 1 epoch, 2 top, 3 iteration, 4 sub, 5 attempt, 6 the time, 7 progress. One that
// comes after the attempt ended changes nothing.
const BEATS: &str = concat!(
    "UPDATE step SET heartbeat_at_ms = v->>6, progress = coalesce(v->>7, progress) ",
    "FROM (SELECT value AS v FROM jsonb_each($12)) JOIN run r ON r.run_no = v->>0 AND r.epoch = v->>1 AND r.state IN ",
    owned!(),
    " WHERE step.run_no = v->>0 AND step.top = v->>2 AND step.iteration = v->>3 AND step.sub = v->>4 ",
    "AND step.attempt = v->>5 AND step.state = 'running';"
);

// $7 the runs. A row: 0 run_no, 1 epoch, 2 state, 3 output, 4 failure, 5 failed_step, 6 ended_at_ms, 7 wake_at_ms,
// 8 is_released. Last, because the other statements look at the state that a run had before. A run that is to end does not
// stop for a person: who wrote it looks whether it did.
const RUNS: &str = concat!(
    "UPDATE run SET state = CASE WHEN v->>2 IN ('paused', 'blocked') AND run.cancel_requested_at_ms IS NOT NULL ",
    "THEN run.state ELSE v->>2 END, output = v->>3, failure = v->>4, failed_step = v->>5, ended_at_ms = v->>6, ",
    "wake_at_ms = v->>7, owner_no = CASE WHEN v->>8 THEN NULL ELSE owner_no END ",
    "FROM (SELECT value AS v FROM jsonb_each($7)) WHERE run.run_no = v->>0 AND run.epoch = v->>1 AND run.state IN ",
    owned!(),
    ";"
);

// $2 the time, $8 the new owner, $9 the only run or NULL, $10 how many. After the others, because a run that ends gives
// its key back. A run may begin when its key is held by none and no earlier run stands in line for it. A child that never
// began is its parent's to begin while that is at work: it keeps to a limit.
const TAKE: &str = concat!(
    "UPDATE run SET state = 'running', owner_no = $8, epoch = epoch + 1, started_at_ms = coalesce(started_at_ms, $2) ",
    "WHERE run_no IN (SELECT q.run_no FROM run q WHERE q.state = 'queued' AND q.state IN ",
    live!(),
    " AND ($9 IS NULL OR q.run_id = $9) ",
    "AND ($9 IS NOT NULL OR q.parent_index IS NULL OR q.epoch > 0 OR NOT EXISTS (SELECT 1 FROM run p ",
    "WHERE p.run_id = q.parent_run_id AND p.state IN ",
    owned!(),
    ")) AND (q.concurrency_key IS NULL OR NOT EXISTS (SELECT 1 FROM run h ",
    "WHERE h.concurrency_key = q.concurrency_key AND h.state IN ",
    live!(),
    " AND (h.state <> 'queued' OR h.run_no < q.run_no))) ORDER BY q.run_no LIMIT $10) ",
    "RETURNING 5, run_no, run_id, epoch, workflow, version, input, cancel_requested_at_ms, \
     pause_requested_at_ms, requeued_at_ms, carry_before_top;"
);

// $8 the new owner, $13 the runs. A row: 0 run_no, 1 epoch, 2 owner_no, as they stood when it was decided to take them.
// What a person asked for (cancel, pause) stays.
const TAKE_OVER: &str = concat!(
    "UPDATE run SET state = 'running', owner_no = $8, epoch = epoch + 1, failure = NULL, failed_step = NULL ",
    "FROM (SELECT value AS v FROM jsonb_each($13)) WHERE run.run_no = v->>0 AND run.epoch = v->>1 ",
    "AND run.owner_no IS v->>2 AND run.state IN ",
    owned!(),
    " RETURNING 5, run_no, run_id, epoch, workflow, version, input, cancel_requested_at_ms, \
     pause_requested_at_ms, requeued_at_ms, carry_before_top;"
);

/// The rows of one transaction.
pub(crate) struct Batch {
    sql: Arc<str>,
    starts: Rows,
    new_runs: Vec<RunId>,
    now_ms: i64,
    writes: usize,
    fences: Rows,
    abandons: Rows,
    attempts: Rows,
    steps: Rows,
    runs: Rows,
    signals: Rows,
    beats: Rows,
    take: Option<Take>,
    over: Rows,
}

impl Batch {
    pub fn new(starts: &[impl Borrow<NewRun>], writes: &[Box<RunWrite>], take: Option<&Take>, now_ms: i64) -> Self {
        let mut batch = Self {
            sql: Arc::from(""),
            starts: Rows::new(),
            new_runs: starts.iter().map(|run| run.borrow().run_id).collect(),
            now_ms,
            writes: writes.len(),
            fences: Rows::new(),
            abandons: Rows::new(),
            attempts: Rows::new(),
            steps: Rows::new(),
            runs: Rows::new(),
            signals: Rows::new(),
            beats: Rows::new(),
            take: take.cloned(),
            over: Rows::new(),
        };
        for (index, run) in starts.iter().enumerate() {
            batch.add_start(index, run.borrow());
        }
        for (index, write) in writes.iter().enumerate() {
            batch.fences.begin().usize(index).i64(write.run_no).i64(write.epoch).end();
            if let Some(top) = write.abandon_from_top {
                batch.abandons.begin().i64(write.run_no).i64(write.epoch).i64(i64::from(top)).end();
            }
            if let Some(attempt) = &write.attempt {
                batch.add_attempt(write, attempt);
            }
            if let Some(step) = &write.step {
                batch.add_step(write, step);
            }
            if let (Some(signal_no), Some(step)) = (write.take_signal, &write.step) {
                let (place, at_ms) = (step.position.to_string(), step.ended_at_ms.unwrap_or(now_ms));
                let row = batch.signals.begin().i64(write.run_no).i64(write.epoch).i64(signal_no);
                row.text(&place).i64(at_ms).end();
            }
            if let Some(beat) = &write.beat {
                batch.add_beat(write, beat);
            }
            if let Some(run) = &write.run {
                batch.add_run(write, run);
            }
        }
        if let Some(Take::Over(take)) = take {
            for run in &take.runs {
                batch.over.begin().i64(run.run_no).i64(run.epoch).opt_i64(run.owner_no).end();
            }
        }
        batch.sql = batch.statements().into();
        batch
    }

    fn add_start(&mut self, index: usize, run: &NewRun) {
        self.starts
            .begin()
            .usize(index)
            .text(&run.run_id.to_string())
            .text(&run.workflow)
            .i64(i64::from(run.version))
            .i64(i64::from(run.detached))
            .text(&run.input)
            .text(&run.input_digest)
            .text(&run.labels)
            .opt_text(run.concurrency_key.as_deref())
            .text(run.concurrency_policy)
            .opt_text(run.parent_run_id.map(|id| id.to_string()).as_deref())
            .opt_text(run.origin_run_id.map(|id| id.to_string()).as_deref())
            .opt_text(run.origin_step.as_deref())
            .opt_text(run.schedule.as_deref())
            .text(&run.actor)
            .opt_text(run.reason.as_deref())
            .opt_text(run.idempotency_key.as_deref())
            .i64(run.idempotency_window_ms)
            .i64(run.owner_no)
            .end();
    }

    fn add_attempt(&mut self, write: &RunWrite, attempt: &AttemptWrite) {
        self.attempts
            .begin()
            .i64(write.run_no)
            .i64(write.epoch)
            .place(attempt.position)
            .i64(i64::from(attempt.attempt))
            .text(attempt.outcome)
            .failure(attempt.failure.as_ref())
            .opt_i64(attempt.started_at_ms)
            .opt_i64(attempt.ended_at_ms)
            .opt_i64(attempt.duration_us.map(saturate))
            .end();
    }

    fn add_step(&mut self, write: &RunWrite, step: &StepWrite) {
        self.steps
            .begin()
            .i64(write.run_no)
            .i64(write.epoch)
            .place(step.position)
            .text(step.kind)
            .text(step.name)
            .opt_text(step.section)
            .opt_text(step.activity)
            .text(step.state.as_str())
            .text(&step.input_digest)
            .opt_text(step.input.as_deref())
            .opt_text(step.output.as_deref())
            .failure(step.failure.as_ref())
            .i64(i64::from(step.attempt))
            .i64(i64::from(step.forgiven))
            .opt_i64(step.next_attempt_at_ms)
            .i64(step.started_at_ms)
            .opt_i64(step.ended_at_ms)
            .opt_i64(step.duration_us.map(saturate))
            .end();
    }

    fn add_beat(&mut self, write: &RunWrite, beat: &BeatWrite) {
        self.beats
            .begin()
            .i64(write.run_no)
            .i64(write.epoch)
            .place(beat.position)
            .i64(i64::from(beat.attempt))
            .i64(beat.at_ms)
            .opt_text(beat.progress.as_deref())
            .end();
    }

    fn add_run(&mut self, write: &RunWrite, run: &RunChange) {
        self.runs
            .begin()
            .i64(write.run_no)
            .i64(write.epoch)
            .text(run.state.as_str())
            .opt_text(run.output.as_deref())
            .failure(run.failure.as_ref())
            .opt_text(run.failed_step.as_deref())
            .opt_i64(run.ended_at_ms)
            .opt_i64(run.wake_at_ms)
            .i64(i64::from(run.is_released))
            .end();
    }

    /// Only the statements that have rows. There are few combinations, so each is prepared once.
    fn statements(&self) -> String {
        let mut sql = String::from(BEGIN);
        for (rows, statements) in [
            (&self.starts, STARTS),
            (&self.fences, FENCES),
            (&self.abandons, ABANDONS),
            (&self.attempts, ATTEMPTS),
            (&self.steps, STEPS),
            (&self.signals, SIGNALS),
            (&self.beats, BEATS),
            (&self.runs, RUNS),
        ] {
            if !rows.is_empty() {
                sql.push_str(statements);
            }
        }
        match self.take {
            Some(Take::Queued(_)) => sql.push_str(TAKE),
            Some(Take::Over(_)) => sql.push_str(TAKE_OVER),
            None => {}
        }
        sql.push_str(COMMIT);
        sql
    }

    /// Carries it out. After an error nothing of it is in the database once the caller has rolled back.
    pub async fn commit(&self, connection: &mut SqliteConnection) -> Result<Done, sqlx::Error> {
        let queued = match &self.take {
            Some(Take::Queued(take)) => Some(take),
            Some(Take::Over(_)) | None => None,
        };
        let rows = sqlx::query(AssertSqlSafe(self.sql.clone()))
            .bind(self.starts.json())
            .bind(self.now_ms)
            .bind(self.fences.json())
            .bind(self.abandons.json())
            .bind(self.attempts.json())
            .bind(self.steps.json())
            .bind(self.runs.json())
            .bind(self.take.as_ref().map(Take::owner_no))
            .bind(queued.and_then(|take| take.only).map(|run_id| run_id.to_string()))
            .bind(queued.map(|take| i64::try_from(take.most).unwrap_or(i64::MAX)))
            .bind(self.signals.json())
            .bind(self.beats.json())
            .bind(self.over.json())
            .fetch_all(connection)
            .await?;
        let mut started: HashMap<RunId, StartAnswer> = HashMap::new();
        let mut passed = vec![true; self.writes];
        let mut taken = Vec::new();
        for row in rows {
            match row.try_get::<i64, _>(0)? {
                1 => {
                    let run_id = parse_id(&row.try_get::<String, _>(2)?)?;
                    let answer =
                        StartAnswer::Existing { run_id, input_digest: row.try_get(3)?, purged: row.try_get(4)? };
                    started.insert(self.new_run(row.try_get(1)?)?, answer);
                }
                2 => {
                    let holder = parse_id(&row.try_get::<String, _>(2)?)?;
                    // A key that started a run before names that run, whoever holds the other key.
                    started.entry(self.new_run(row.try_get(1)?)?).or_insert(StartAnswer::Busy { holder });
                }
                3 => {
                    let state: String = row.try_get(3)?;
                    let state = RunState::from_name(&state).ok_or_else(|| unexpected("a state", &state))?;
                    let run_id = parse_id(&row.try_get::<String, _>(1)?)?;
                    started.insert(run_id, StartAnswer::Started { run_no: row.try_get(2)?, state });
                }
                5 => taken.push(ClaimedRun::read(&row)?),
                _ => {
                    let index: i64 = row.try_get(1)?;
                    if let Some(slot) = usize::try_from(index).ok().and_then(|index| passed.get_mut(index)) {
                        *slot = false;
                    }
                }
            }
        }
        let starts = self
            .new_runs
            .iter()
            .map(|run_id| started.remove(run_id).ok_or(sqlx::Error::RowNotFound))
            .collect::<Result<_, _>>()?;
        // In the order of the queue, whatever the order of the update.
        taken.sort_by_key(|run| run.run_no);
        Ok(Done { starts, passed, taken })
    }

    fn new_run(&self, index: i64) -> Result<RunId, sqlx::Error> {
        let run = usize::try_from(index).ok().and_then(|index| self.new_runs.get(index));
        run.copied().ok_or_else(|| unexpected("an index", &index.to_string()))
    }
}

/// Starts the runs within a transaction of the caller's, and answers each in their order. The runs of one call do not see
/// each other: those that a common key keeps apart need a call each.
pub(crate) async fn start_within(
    connection: &mut SqliteConnection,
    runs: &[&NewRun],
    now_ms: i64,
) -> Result<Vec<StartAnswer>, sqlx::Error> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let batch = Batch { sql: STARTS.into(), ..Batch::new(runs, &[], None, now_ms) };
    Ok(batch.commit(connection).await?.starts)
}

fn saturate(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn parse_id(text: &str) -> Result<RunId, sqlx::Error> {
    text.parse().map_err(|_| unexpected("an id", text))
}

fn unexpected(what: &str, found: &str) -> sqlx::Error {
    sqlx::Error::Protocol(format!("the journal gave {found:?} for {what}"))
}

/// A JSON array of arrays, written as it grows. Texts are what can be long, so they are written once.
struct Rows(String);

impl Rows {
    fn new() -> Self {
        Self(String::new())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn json(&self) -> Option<String> {
        (!self.is_empty()).then(|| format!("{}]", self.0))
    }

    fn begin(&mut self) -> &mut Self {
        self.0.push_str(if self.0.is_empty() { "[[" } else { ",[" });
        self
    }

    fn end(&mut self) {
        // The comma after the last value.
        self.0.pop();
        self.0.push(']');
    }

    fn i64(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_string())
    }

    fn usize(&mut self, value: usize) -> &mut Self {
        self.raw(&value.to_string())
    }

    fn opt_i64(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.i64(value),
            None => self.raw("null"),
        }
    }

    fn text(&mut self, value: &str) -> &mut Self {
        self.raw(&serde_json::Value::from(value).to_string())
    }

    fn opt_text(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(value),
            None => self.raw("null"),
        }
    }

    fn failure(&mut self, failure: Option<&Failure>) -> &mut Self {
        // A failure is texts and a name: it can be written.
        self.opt_text(failure.and_then(|failure| serde_json::to_string(failure).ok()).as_deref())
    }

    fn place(&mut self, position: Position) -> &mut Self {
        self.i64(i64::from(position.top)).i64(i64::from(position.iteration)).i64(i64::from(position.sub))
    }

    fn raw(&mut self, json: &str) -> &mut Self {
        self.0.push_str(json);
        self.0.push(',');
        self
    }
}
