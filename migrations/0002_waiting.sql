-- What runs that wait, children and steps at work leave.

-- A timer is a step of the kind sleep: its time is next_attempt_at_ms.
DROP TABLE timer;

-- The last sign of life of the attempt at work, and how far it is: {unit, done, total}.
ALTER TABLE step ADD COLUMN heartbeat_at_ms INTEGER;
ALTER TABLE step ADD COLUMN progress TEXT;

-- A child's place among the children of its parent's step: each is started once.
ALTER TABLE run ADD COLUMN parent_index INTEGER;
CREATE UNIQUE INDEX run_child_once ON run (parent_run_id, parent_position, parent_index)
    WHERE parent_index IS NOT NULL;
CREATE INDEX run_live_child ON run (parent_run_id, parent_position, parent_index)
    WHERE parent_index IS NOT NULL AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked');

CREATE INDEX signal_open ON signal (run_no) WHERE taken_at_ms IS NULL;
CREATE INDEX run_to_pause ON run (owner_no) WHERE pause_requested_at_ms IS NOT NULL AND ended_at_ms IS NULL;
