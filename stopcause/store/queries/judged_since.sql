-- The current verdict of the latest attempt of each run, given since then, and the verdict before it.
SELECT v.*, before.verdict AS previous_verdict, before.reason AS previous_reason
FROM verdicts AS v
ANTI JOIN (SELECT run_id, attempt, revision FROM verdicts WHERE sign = -1 AND hour BETWEEN $first AND $last) AS gone
    ON v.run_id = gone.run_id AND v.attempt = gone.attempt AND v.revision = gone.revision
LEFT JOIN (
    SELECT run_id, attempt, revision, verdict, reason
    FROM verdicts
    WHERE sign = 1 AND hour BETWEEN $first AND $last
) AS before
    ON v.run_id = before.run_id AND v.attempt = before.attempt AND v.revision = before.revision + 1
WHERE v.sign = 1
    AND v.is_latest
    AND v.verdict IS NOT NULL
    AND v.as_of >= $since
    AND v.hour BETWEEN $first AND $last
ORDER BY v.opened_at, v.run_id
