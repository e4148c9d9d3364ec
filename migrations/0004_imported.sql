-- Runs that were exported elsewhere and are here to be read. A document each, in no relation to the table run: nothing
-- that takes up, changes or purges runs looks here.
CREATE TABLE imported (
    imported_no    INTEGER PRIMARY KEY,
    run_id         TEXT    NOT NULL UNIQUE,
    imported_at_ms INTEGER NOT NULL,
    imported_by    TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    -- Of the content, whoever exported it and when.
    digest         TEXT    NOT NULL,
    -- What a list of runs needs, as JSON.
    run            TEXT    NOT NULL,
    -- The whole export, as JSON. Last, so that a list does not read it.
    document       TEXT    NOT NULL
) STRICT;

-- A run, with those that belong to it, whose purge takes more than one transaction: the next purge ends what was begun.
CREATE TABLE purge_begun (
    run_no      INTEGER PRIMARY KEY REFERENCES run (run_no) ON DELETE CASCADE,
    begun_at_ms INTEGER NOT NULL
) STRICT;

-- What a purge asks of each run: whether a live run replays it.
CREATE INDEX run_live_origin ON run (origin_run_id)
    WHERE origin_run_id IS NOT NULL AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked');
-- And of each owner: whether a run that ended names it.
CREATE INDEX run_ended_owner ON run (owner_no) WHERE owner_no IS NOT NULL AND ended_at_ms IS NOT NULL;
