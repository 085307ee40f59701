-- Where the current rows of groups are: those of the list, and every open wait without a route however old.
WITH kept AS (
    SELECT rowid AS place, sign, run_id, attempt, revision, opened_at
    FROM verdicts
    SEMI JOIN (SELECT unnest($groups) AS fingerprint) AS wanted USING (fingerprint)
    WHERE is_latest AND ((hour >= $hour AND opened_at >= $since) OR verdict = 'WAITING_UNROUTED')
)
SELECT kept.place
FROM kept
ANTI JOIN (SELECT run_id, attempt, revision FROM kept WHERE sign = -1) AS gone USING (run_id, attempt, revision)
WHERE sign = 1
ORDER BY opened_at DESC, run_id
