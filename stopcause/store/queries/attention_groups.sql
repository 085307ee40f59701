-- Groups of the current rows of a list, and of every open wait without a route however old, by what becomes of them
-- (`pile`). A cancelled row equals its -1 row in every other column, so filtering first loses nothing. A time after
-- `until` comes from a clock that ran ahead: it is neither a group's newest nor counted as timely.
WITH kept AS (
    SELECT rowid AS place, sign, run_id, attempt, revision, fingerprint, verdict, reason, contract, stage, opened_at,
        coalesce(stopped_at, last_at) AS ended_at, last_at, judge_again_at,
        CASE WHEN verdict = 'WAITING_UNROUTED'
            THEN list_min([least(w.due, w.expires_at) FOR w IN waits IF w.resolution IS NULL])
        END AS due
    FROM verdicts
    WHERE is_latest
        AND hour >= $hour
        AND opened_at >= $since
        AND verdict NOT IN ('WAITING', 'VERIFIED_COMPLETE')
        AND (len($verdicts) = 0 OR list_contains($verdicts, verdict))
        AND ($agent IS NULL OR agent = $agent)
    UNION ALL
    SELECT rowid AS place, sign, run_id, attempt, revision, fingerprint, verdict, reason, contract, stage, opened_at,
        coalesce(stopped_at, last_at) AS ended_at, last_at, judge_again_at,
        list_min([least(w.due, w.expires_at) FOR w IN waits IF w.resolution IS NULL]) AS due
    FROM verdicts
    WHERE is_latest
        AND hour <= $hour
        AND opened_at < $since
        AND verdict = 'WAITING_UNROUTED'
        AND (len($verdicts) = 0 OR list_contains($verdicts, verdict))
        AND ($agent IS NULL OR agent = $agent)
),
live AS (
    SELECT kept.*, CASE WHEN last_at <= $until THEN last_at END AS seen_at
    FROM kept
    ANTI JOIN (SELECT run_id, attempt, revision FROM kept WHERE sign = -1) AS gone USING (run_id, attempt, revision)
    WHERE sign = 1
),
grouped AS (
    SELECT
        fingerprint,
        CASE
            WHEN verdict = 'WAITING_UNROUTED'
                THEN CASE WHEN ended_at <= $now AND ended_at > $graced THEN 'graced' ELSE 'attention' END
            WHEN verdict = 'BOUNDED_STOP' THEN 'bounded'
            WHEN verdict <> 'FALSE_COMPLETE' THEN 'attention'
            WHEN reason = 'receipt_pending' THEN 'pending'
            WHEN stage = 'observe' OR (contract IS NULL AND reason <> 'receipt_refuted') THEN 'unproven'
            ELSE 'attention'
        END AS pile,
        count(*) AS size,
        count(*) FILTER (opened_at >= $marked AND opened_at <= $until) AS timely,
        min(ended_at) AS first_at,
        coalesce(max(seen_at), $now) AS last_at,
        max(judge_again_at) AS again_at,
        min(due) AS due,
        max({'seen_at': coalesce(seen_at, TIMESTAMP '1970-01-01'), 'run_id': run_id, 'place': place}).place AS newest
    FROM live
    GROUP BY ALL
)
SELECT g.* EXCLUDE (newest), v.verdict, v.reason, v.stop_cause, v.agent, v.environment, v.owner, v.stage, v.rule,
    v.detail, v.missing, v.run_id
FROM grouped AS g
JOIN verdicts AS v ON v.rowid = g.newest
