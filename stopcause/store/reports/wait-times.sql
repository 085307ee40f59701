-- name: wait-times
-- title: How long waits take
-- question: How long do answers take, and how old are the waits without one?
-- for: on-call owner
-- since: 7d
-- empty: No run of the window waited, and none waits now. Look further back with --since 30d.
-- column: resolution | text | ENDED BY | what closed the waits; open: those that still wait, however old
-- column: waits | count | WAITS | how many
-- column: timed | count | TIMED | those whose length is known; of open ones their age by now
-- column: p50_s | seconds | P50 | half of them took at most so long, in seconds
-- column: p95_s | seconds | P95 | 95 of 100 took at most so long
-- column: longest_s | seconds | LONGEST | the longest of them
-- column: had_due | count | HAD DUE | those with a soft deadline whose end is known, or that is over
-- column: in_time | count | IN TIME | those of them that ended by it
WITH closed AS (
    SELECT stopped_at, last_at, unnest(waits) AS wait
    FROM verdicts AS v
    ANTI JOIN (SELECT run_id, attempt, revision FROM verdicts WHERE sign = -1 AND hour >= $hour) AS gone
        USING (run_id, attempt, revision)
    WHERE sign = 1 AND is_latest AND hour >= $hour AND opened_at >= $since AND len(waits) > 0
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
),
waiting AS (
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
asked AS (
    SELECT wait, false AS is_open, coalesce(wait.since, stopped_at, last_at) AS since, wait.ended_at AS until
    FROM closed
    WHERE wait.resolution IS NOT NULL
    UNION ALL
    SELECT wait, true, coalesce(wait.since, stopped_at, last_at), $now::TIMESTAMP
    FROM (SELECT stopped_at, last_at, unnest(waits) AS wait FROM waiting)
    WHERE wait.resolution IS NULL
),
timed AS (
    SELECT *, CASE WHEN until IS NOT NULL THEN greatest(epoch_us(until) - epoch_us(since), 0) / 1e6 END AS took_s
    FROM asked
)
SELECT
    CASE WHEN is_open THEN 'open' ELSE wait.resolution END AS resolution,
    count(*) AS waits,
    count(took_s) AS timed,
    quantile_cont(took_s, 0.5) AS p50_s,
    quantile_cont(took_s, 0.95) AS p95_s,
    max(took_s) AS longest_s,
    count(*) FILTER (wait.due IS NOT NULL AND (NOT is_open AND until IS NOT NULL OR is_open AND wait.due <= until))
        AS had_due,
    count(*) FILTER (NOT is_open AND until <= wait.due) AS in_time
FROM timed
GROUP BY is_open, resolution
ORDER BY is_open DESC, waits DESC, resolution
LIMIT $limit
