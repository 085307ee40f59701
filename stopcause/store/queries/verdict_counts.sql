-- Runs by the verdict on their latest attempt; '' while it runs.
SELECT coalesce(verdict, ''), count(*)
FROM (
    SELECT run_id, attempt, any_value(verdict) AS verdict
    FROM verdicts
    GROUP BY run_id, attempt, revision
    HAVING sum(sign) > 0
    QUALIFY attempt = max(attempt) OVER (PARTITION BY run_id)
)
GROUP BY ALL
ORDER BY ALL
