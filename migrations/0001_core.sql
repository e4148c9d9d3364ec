-- The state database of jobctl. Times are milliseconds since 1970-01-01T00:00:00Z. A file of this folder never changes
-- once it was released: what comes later is a further file.

-- A process that worked on runs. It holds a lock on owners/<owner_id> as long as it lives; the lease is for the case
-- where the lock cannot tell.
CREATE TABLE owner (
    owner_no          INTEGER PRIMARY KEY,
    owner_id          TEXT    NOT NULL UNIQUE,
    pid               INTEGER NOT NULL,
    host              TEXT    NOT NULL,
    version           TEXT    NOT NULL,
    started_at_ms     INTEGER NOT NULL,
    lease_until_at_ms INTEGER NOT NULL,
    ended_at_ms       INTEGER
) STRICT;

CREATE TABLE run (
    run_no               INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id               TEXT    NOT NULL UNIQUE,
    workflow             TEXT    NOT NULL,
    -- The definition version that the run started with and is resumed under.
    version              INTEGER NOT NULL,
    state                TEXT    NOT NULL
        CHECK (state IN ('queued', 'running', 'waiting', 'paused', 'blocked', 'succeeded', 'failed', 'cancelled')),
    input                TEXT    NOT NULL,
    input_digest         TEXT    NOT NULL,
    output               TEXT,
    -- {code, message, disposition, hint}: why it failed or is blocked, and at which step.
    failure              TEXT,
    failed_step          TEXT,
    -- A JSON object of texts, such as {"product": "14100287"}.
    labels               TEXT    NOT NULL,
    concurrency_key      TEXT,
    concurrency_policy   TEXT    NOT NULL CHECK (concurrency_policy IN ('forbid', 'queue')),
    parent_run_id        TEXT,
    parent_position      TEXT,
    -- The run that this one replays, and from which step.
    origin_run_id        TEXT,
    origin_step          TEXT,
    schedule             TEXT,
    actor                TEXT    NOT NULL,
    reason               TEXT,
    idempotency_key      TEXT,
    -- Who works on it. Each taking-over counts the epoch up; a write of an older epoch is fenced.
    owner_no             INTEGER,
    epoch                INTEGER NOT NULL,
    cancel_requested_at_ms INTEGER,
    pause_requested_at_ms  INTEGER,
    -- When a waiting run is due.
    wake_at_ms           INTEGER,
    created_at_ms        INTEGER NOT NULL,
    started_at_ms        INTEGER,
    ended_at_ms          INTEGER
) STRICT;

-- One live run holds a key; those in the queue stand in line for it.
CREATE UNIQUE INDEX run_holds_key ON run (concurrency_key)
    WHERE concurrency_key IS NOT NULL AND state IN ('running', 'waiting', 'paused', 'blocked');
CREATE INDEX run_live ON run (state, run_no)
    WHERE state IN ('queued', 'running', 'waiting', 'paused', 'blocked');
CREATE INDEX run_live_key ON run (concurrency_key, run_no)
    WHERE concurrency_key IS NOT NULL AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked');
CREATE INDEX run_parent ON run (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX run_product ON run (json_extract(labels, '$.product'), run_no)
    WHERE json_extract(labels, '$.product') IS NOT NULL;
CREATE INDEX run_ended ON run (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

CREATE INDEX run_to_cancel ON run (owner_no) WHERE cancel_requested_at_ms IS NOT NULL AND ended_at_ms IS NULL;

CREATE TRIGGER run_terminal_is_immutable BEFORE UPDATE ON run
    WHEN OLD.state IN ('succeeded', 'failed', 'cancelled')
BEGIN
    SELECT RAISE(ABORT, 'a run that ended never changes');
END;

-- What a run asked for, each with its latest attempt; the attempts before it are in the table attempt. Rows are appended,
-- whatever run they belong to, so that a commit touches few pages.
CREATE TABLE step (
    step_no            INTEGER PRIMARY KEY,
    run_no             INTEGER NOT NULL REFERENCES run (run_no) ON DELETE CASCADE,
    -- The place in the run: top.sub in the iteration of a section (1 and 0 outside one).
    top                INTEGER NOT NULL,
    iteration          INTEGER NOT NULL,
    sub                INTEGER NOT NULL,
    kind               TEXT    NOT NULL
        CHECK (kind IN ('activity', 'now', 'new_id', 'section', 'section_end', 'sleep', 'signal', 'child', 'fan_out')),
    name               TEXT    NOT NULL,
    section            TEXT,
    activity           TEXT,
    state              TEXT    NOT NULL
        CHECK (state IN ('pending', 'running', 'retrying', 'succeeded', 'failed', 'abandoned')),
    input_digest       TEXT    NOT NULL,
    input              TEXT,
    output             TEXT,
    failure            TEXT,
    attempt            INTEGER NOT NULL,
    -- How many attempts no longer count, because a person resumed the run after them.
    forgiven           INTEGER NOT NULL,
    next_attempt_at_ms INTEGER,
    -- Set where the result was carried over from another run by a replay.
    carried_from       TEXT,
    epoch              INTEGER NOT NULL,
    first_started_at_ms INTEGER NOT NULL,
    started_at_ms      INTEGER NOT NULL,
    ended_at_ms        INTEGER,
    duration_us        INTEGER
) STRICT;

CREATE UNIQUE INDEX step_place ON step (run_no, top, iteration, sub);

CREATE TRIGGER step_result_is_immutable BEFORE UPDATE ON step
    WHEN OLD.state IN ('succeeded', 'failed', 'abandoned')
BEGIN
    SELECT RAISE(ABORT, 'a recorded result never changes')
    WHERE NOT (
        NEW.state = 'abandoned' AND OLD.section IS NOT NULL
        AND NEW.output IS OLD.output AND NEW.failure IS OLD.failure AND NEW.attempt = OLD.attempt
    );
END;

-- An attempt that ended without being its step's result: it failed and another followed, or its process died.
CREATE TABLE attempt (
    run_no        INTEGER NOT NULL REFERENCES run (run_no) ON DELETE CASCADE,
    top           INTEGER NOT NULL,
    iteration     INTEGER NOT NULL,
    sub           INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    outcome       TEXT    NOT NULL CHECK (outcome IN ('failed', 'crashed', 'timed_out', 'cancelled')),
    failure       TEXT,
    epoch         INTEGER NOT NULL,
    started_at_ms INTEGER,
    ended_at_ms   INTEGER,
    duration_us   INTEGER,
    PRIMARY KEY (run_no, top, iteration, sub, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE signal (
    signal_no      INTEGER PRIMARY KEY,
    run_no         INTEGER NOT NULL REFERENCES run (run_no) ON DELETE CASCADE,
    name           TEXT    NOT NULL,
    payload        TEXT    NOT NULL,
    actor          TEXT    NOT NULL,
    sent_at_ms     INTEGER NOT NULL,
    -- The place of the step that took it.
    taken_by       TEXT,
    taken_at_ms    INTEGER
) STRICT;
CREATE INDEX signal_run ON signal (run_no, name, signal_no);

CREATE TABLE timer (
    run_no        INTEGER NOT NULL REFERENCES run (run_no) ON DELETE CASCADE,
    top           INTEGER NOT NULL,
    iteration     INTEGER NOT NULL,
    sub           INTEGER NOT NULL,
    due_at_ms     INTEGER NOT NULL,
    fired_at_ms   INTEGER,
    PRIMARY KEY (run_no, top, iteration, sub)
) STRICT, WITHOUT ROWID;
CREATE INDEX timer_due ON timer (due_at_ms) WHERE fired_at_ms IS NULL;

CREATE TABLE schedule (
    schedule_no       INTEGER PRIMARY KEY,
    name              TEXT    NOT NULL UNIQUE,
    workflow          TEXT    NOT NULL,
    input             TEXT    NOT NULL,
    cron              TEXT    NOT NULL,
    time_zone         TEXT    NOT NULL,
    misfire           TEXT    NOT NULL CHECK (misfire IN ('run-once', 'skip', 'run-all')),
    catch_up_ms       INTEGER NOT NULL,
    -- Local times up to this one were decided, as yyyy-mm-ddThh:mm:ss.
    cursor_local      TEXT,
    cursor_at_ms      INTEGER,
    paused_at_ms      INTEGER,
    created_at_ms     INTEGER NOT NULL,
    changed_at_ms     INTEGER NOT NULL
) STRICT;

-- What became of each time that a schedule named; also of those that were skipped.
CREATE TABLE tick (
    tick_no        INTEGER PRIMARY KEY,
    schedule       TEXT    NOT NULL,
    local_time     TEXT    NOT NULL,
    due_at_ms      INTEGER NOT NULL,
    outcome        TEXT    NOT NULL CHECK (outcome IN ('started', 'skipped', 'held')),
    reason         TEXT,
    run_id         TEXT,
    decided_at_ms  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tick_once ON tick (schedule, local_time);

-- What persons did.
CREATE TABLE audit (
    audit_no   INTEGER PRIMARY KEY,
    at_ms      INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    action     TEXT    NOT NULL,
    run_id     TEXT,
    schedule   TEXT,
    reason     TEXT    NOT NULL,
    details    TEXT
) STRICT;
CREATE INDEX audit_run ON audit (run_id) WHERE run_id IS NOT NULL;

-- Outlives its run: a key that is used again within its window names the run that it started.
CREATE TABLE idempotency (
    workflow      TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    run_id        TEXT    NOT NULL,
    input_digest  TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (workflow, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expires ON idempotency (expires_at_ms);
