-- What became of the runs of each agent
SELECT agent, verdict, count(*) AS runs, round(sum(cost_usd), 2) AS usd
FROM runs
GROUP BY ALL
ORDER BY agent, runs DESC;

-- Finishes that nobody vouches for, and what they did before
SELECT run_id, agent, reason, tool_calls, stopped_at
FROM runs
WHERE verdict = 'FALSE_COMPLETE'
ORDER BY stopped_at DESC
LIMIT 20;

-- Who is waited for, and since when
SELECT wait.owner, wait.tool, run_id, wait.since, wait.due
FROM runs, unnest(waits) AS w(wait)
WHERE wait.resolution IS NULL
ORDER BY wait.since;

-- How close to their step limit runs come
SELECT
    agent,
    count(*) AS runs,
    round(quantile_cont(steps / step_limit, 0.95), 2) AS p95_of_limit,
    count(*) FILTER (verdict = 'BOUNDED_STOP') AS stopped
FROM runs
WHERE step_limit > 0
GROUP BY agent
ORDER BY p95_of_limit DESC;

-- Verdicts that changed: what a run was called first, and what it is called now
SELECT first.run_id, first.verdict AS first, runs.verdict AS now, runs.reason
FROM verdicts AS first
JOIN runs USING (run_id, attempt)
WHERE first.revision = 1 AND first.sign = 1 AND first.verdict IS DISTINCT FROM runs.verdict
ORDER BY runs.as_of DESC
LIMIT 20;
