-- What runs that wait, children and steps at work leave.

-- A timer is a step of the kind sleep: its time is next_attempt_at_ms.
DROP TABLE timer;

-- The last sign of life of the attempt at work, and how far it is: {unit, done, total}.
ALTER TABLE step ADD COLUMN heartbeat_at_ms INTEGER;
ALTER TABLE step ADD COLUMN progress TEXT;

-- A child's place among the children of its parent's step: each is started once.
ALTER TABLE run ADD COLUMN parent_index INTEGER;
-- When a person put it back into the queue: it goes on as one that a person resumed.
ALTER TABLE run ADD COLUMN requeued_at_ms INTEGER;
CREATE UNIQUE INDEX run_child_once ON run (parent_run_id, parent_position, parent_index)
    WHERE parent_index IS NOT NULL;
-- How a child ended is its parent's to read; one that is gone would be started again.
CREATE TRIGGER run_child_is_kept BEFORE DELETE ON run
    WHEN OLD.parent_index IS NOT NULL AND EXISTS (
        SELECT 1 FROM run WHERE run_id = OLD.parent_run_id
        AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked')
    )
BEGIN
    SELECT RAISE(ABORT, 'a child is kept until its parent has ended');
END;
CREATE INDEX run_live_child ON run (parent_run_id, parent_position, parent_index)
    WHERE parent_index IS NOT NULL AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked');

CREATE INDEX signal_open ON signal (run_no) WHERE taken_at_ms IS NULL;
CREATE INDEX run_to_pause ON run (owner_no) WHERE pause_requested_at_ms IS NOT NULL AND ended_at_ms IS NULL;
