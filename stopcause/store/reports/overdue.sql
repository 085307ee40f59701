-- name: overdue
-- title: Overdue waits
-- question: What should have been answered by now, and by whom?
-- for: on-call owner
-- empty: Nothing is overdue. `report waiting` shows what waits.
-- column: approval_id | id | - | what waits; nothing where a run waits and does not say for what
-- column: run_id | id | RUN | the run that waits
-- column: agent | text | AGENT | its agent
-- column: environment | text | - | prod, staging, ...
-- column: verdict | verdict | - | WAITING, or WAITING_UNROUTED where this or another wait of the run lacks something
-- column: waits_for | text | FOR | the gated tool, else the kind
-- column: kind | text | - | tool_call, input_required, confirmation, external, sign_in
-- column: tool | text | - | the gated tool
-- column: owner | text | OWNER | who has to answer
-- column: waits_since | ago | AGE | since when
-- column: due | time | DUE | the soft deadline that went by
-- column: late_s | seconds | LATE | how long ago that was, in seconds
-- column: expires_at | time | - | the producer's hard deadline
WITH waiting AS (
    SELECT run_id, attempt, revision, sign, agent, environment, verdict, stopped_at, last_at, waits
    FROM verdicts
    WHERE rowid IN (  -- waits are few and far between: the wide columns are read of their rows only
        SELECT rowid
        FROM verdicts
        WHERE is_latest
            AND verdict BETWEEN 'WAITING' AND 'WAITING_UNROUTED'  -- just those two, as a range that a scan can look for
            AND reason <> 'answered'
            AND ($agent IS NULL OR agent = $agent)
            AND ($environment IS NULL OR environment = $environment)
    )
    QUALIFY sign = 1 AND sum(sign) OVER (PARTITION BY run_id, attempt, revision) > 0
),
each AS (
    SELECT * EXCLUDE (waits), unnest(waits) AS wait, unnest(range(len(waits))) AS number
    FROM waiting
)
SELECT
    wait.approval_id AS approval_id,
    run_id,
    agent,
    environment,
    verdict,
    coalesce(wait.tool, wait.kind) AS waits_for,
    wait.kind AS kind,
    wait.tool AS tool,
    wait.owner AS owner,
    coalesce(wait.since, stopped_at, last_at) AS waits_since,
    wait.due AS due,
    greatest(epoch_us($now::TIMESTAMP) - epoch_us(wait.due), 0) / 1e6 AS late_s,
    wait.expires_at AS expires_at
FROM each
WHERE wait.resolution IS NULL AND list_contains(wait.missing, 'overdue')
ORDER BY late_s DESC, run_id, number
LIMIT $limit
