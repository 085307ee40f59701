-- Runs that never ended: their lease is over, or nothing is known of one.
SELECT
    count(*) FILTER (lease_is_over) AS over,
    count(*) FILTER (NOT lease_is_over) AS unknown,
    max_by(run_id, last_at) AS newest
FROM (
    SELECT run_id, last_at, reason <> 'run_open' AS lease_is_over
    FROM runs
    WHERE hour >= $hour
        AND stopped_at IS NULL
        AND (reason IN ('lease_expired', 'run_open') OR (verdict IS NULL AND judge_again_at <= $now))
)
