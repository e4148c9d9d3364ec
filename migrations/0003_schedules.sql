-- What a schedule starts besides its workflow and input: with which key, and under which labels.
ALTER TABLE schedule ADD COLUMN concurrency_key TEXT;
ALTER TABLE schedule ADD COLUMN concurrency_policy TEXT NOT NULL DEFAULT 'forbid'
    CHECK (concurrency_policy IN ('forbid', 'queue'));
ALTER TABLE schedule ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
-- Who paused it and why, for the reason of the ticks that are skipped meanwhile.
ALTER TABLE schedule ADD COLUMN paused_by TEXT;
ALTER TABLE schedule ADD COLUMN paused_reason TEXT;
-- Since when the configuration has it no more. Its row and its ticks stay.
ALTER TABLE schedule ADD COLUMN removed_at_ms INTEGER;
-- Counted up by each change but that of the cursor: ticks that were decided by an older state of the row are not written.
ALTER TABLE schedule ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

-- The zone that local_time is a time of: after a change of zone the same local time is another tick.
ALTER TABLE tick ADD COLUMN time_zone TEXT NOT NULL DEFAULT 'UTC';
-- The run that held the key, where one did.
ALTER TABLE tick ADD COLUMN holder_run_id TEXT;
DROP INDEX tick_once;
CREATE UNIQUE INDEX tick_once ON tick (schedule, time_zone, local_time);
CREATE INDEX tick_of_schedule ON tick (schedule, tick_no);
CREATE INDEX tick_without_run ON tick (tick_no) WHERE outcome <> 'started';
CREATE INDEX tick_of_schedule_without_run ON tick (schedule, tick_no) WHERE outcome <> 'started';

CREATE INDEX audit_schedule ON audit (schedule, audit_no) WHERE schedule IS NOT NULL;
