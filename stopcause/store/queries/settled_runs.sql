-- Each run once, by the first verdict that settled it while the attempt was its latest: rows are never taken back, so
-- these sums only grow. Where a settled row was cancelled there are several; elsewhere the current row is the first.
WITH changed AS (
    SELECT DISTINCT run_id FROM verdicts WHERE sign = -1 AND settled AND is_latest
),
first_of_changed AS (
    SELECT
        run_id,
        arg_min(
            {'verdict': verdict, 'reason': reason, 'cause': stop_cause, 'agent': agent, 'environment': environment},
            (as_of, attempt, revision)
        ) AS said,
        min(as_of) AS settled_at
    FROM verdicts SEMI JOIN changed USING (run_id)
    WHERE sign = 1 AND settled AND is_latest
    GROUP BY run_id
)
SELECT verdict, reason, cause, agent, environment, count(*) AS runs, min(settled_at) AS first_at
FROM (
    SELECT verdict, reason, stop_cause AS cause, agent, environment, as_of AS settled_at
    FROM verdicts ANTI JOIN changed USING (run_id)
    WHERE sign = 1 AND settled AND is_latest
    UNION ALL
    SELECT said.verdict, said.reason, said.cause, said.agent, said.environment, settled_at
    FROM first_of_changed
)
GROUP BY ALL
ORDER BY first_at, verdict, reason, cause, agent, environment
