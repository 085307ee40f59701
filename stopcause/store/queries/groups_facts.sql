-- What groups are, how many runs they have, which is the newest, and the first moment at which one of their waits is due.
WITH kept AS (
    SELECT sign, run_id, attempt, revision, fingerprint, verdict, reason, agent, environment, detail, owner,
        coalesce(stopped_at, last_at) AS ended_at,
        CASE WHEN last_at <= $until THEN last_at END AS seen_at,
        CASE WHEN verdict LIKE 'WAITING%'
            THEN list_min([least(w.due, w.expires_at) FOR w IN waits IF w.resolution IS NULL])
        END AS due
    FROM verdicts
    SEMI JOIN (SELECT unnest($groups) AS fingerprint) AS wanted USING (fingerprint)
    WHERE is_latest
),
grouped AS (
    SELECT
        fingerprint,
        any_value(verdict) AS verdict,
        any_value(reason) AS reason,
        any_value(agent) AS agent,
        any_value(environment) AS environment,
        any_value(detail) AS detail,
        max({'seen_at': coalesce(seen_at, TIMESTAMP '1970-01-01'), 'run_id': run_id, 'owner': owner}) AS newest,
        count(*) AS size,
        min(ended_at) AS first_at,
        coalesce(max(seen_at), $until) AS last_at,
        min(due) AS due
    FROM kept
    ANTI JOIN (SELECT run_id, attempt, revision FROM kept WHERE sign = -1) AS gone USING (run_id, attempt, revision)
    WHERE sign = 1
    GROUP BY fingerprint
)
SELECT * EXCLUDE (newest), newest.owner AS owner, newest.run_id AS run_id
FROM grouped
ORDER BY last_at DESC, fingerprint
