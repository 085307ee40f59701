-- name: stop-causes
-- title: Top stop causes
-- question: Why do runs stop?
-- for: SRE in the morning
-- empty: No run of that is here. Look further back with --since 30d, or at `runs --all`.
-- column: stop_cause | text | CAUSE | why control flow ended; nothing where no record says
-- column: runs | count | RUNS | runs that stopped so
-- column: share | share | SHARE | of all runs of the window
-- column: agents | count | AGENTS | how many named agents they are of
-- column: top_agent | text | MOST OF | the agent that has most of them
-- column: top_agent_runs | count | RUNS | how many it has
WITH counted AS (
    SELECT stop_cause, agent, sum(sign) AS runs
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
    GROUP BY stop_cause, agent
    HAVING sum(sign) > 0
)
SELECT
    stop_cause,
    sum(runs)::BIGINT AS runs,
    sum(runs) / sum(sum(runs)) OVER () AS share,
    count(agent) AS agents,
    arg_min(agent, {'runs': -runs, 'agent': agent}) FILTER (agent IS NOT NULL) AS top_agent,
    max(runs) FILTER (agent IS NOT NULL)::BIGINT AS top_agent_runs
FROM counted
GROUP BY stop_cause
ORDER BY runs DESC, stop_cause
LIMIT $limit
