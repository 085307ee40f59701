-- The latest attempt of each run, newest first. The small side (cancelled rows) is what is hashed, and the many columns
-- are read only of the rows that are wanted.
SELECT *
FROM verdicts
WHERE rowid IN (
    SELECT v.rowid
    FROM verdicts AS v
    ANTI JOIN (
        SELECT run_id, attempt, revision FROM verdicts WHERE sign = -1 AND hour >= $hour
    ) AS gone
        ON v.run_id = gone.run_id AND v.attempt = gone.attempt AND v.revision = gone.revision
    WHERE v.sign = 1
        AND v.is_latest
        AND v.hour >= $hour
        AND v.opened_at >= $since
        AND (len($verdicts) = 0 OR list_contains($verdicts, coalesce(v.verdict, '')))
        AND ($agent IS NULL OR v.agent = $agent)
        AND ($environment IS NULL OR v.environment = $environment)
    ORDER BY v.opened_at DESC, v.run_id
    LIMIT $most
)
ORDER BY opened_at DESC, run_id
