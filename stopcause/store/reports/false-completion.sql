-- name: false-completion
-- title: Finished without proof
-- question: Of the runs that say they are done, how many are not proven, and why not?
-- for: SRE who sees only successes
-- empty: No run of the window finished without proof. Look further back with --since 30d.
-- column: reason | text | REASON | why FALSE_COMPLETE
-- column: runs | count | RUNS | runs with that reason
-- column: share | share | SHARE | of all that are FALSE_COMPLETE
-- column: share_of_finished | share | OF FINISHED | of all that finished, proven or not
-- column: enforced | count | ENFORCED | runs of agents in stage enforce
-- column: agents | count | AGENTS | how many named agents they are of
-- column: top_agent | text | MOST OF | the agent that has most of them
WITH counted AS (
    SELECT verdict, reason, agent, stage, sum(sign) AS runs
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
        AND verdict IN ('VERIFIED_COMPLETE', 'FALSE_COMPLETE')
    GROUP BY verdict, reason, agent, stage
    HAVING sum(sign) > 0
),
by_agent AS (
    SELECT
        verdict,
        reason,
        agent,
        sum(runs) AS runs,
        sum(CASE WHEN stage = 'enforce' THEN runs ELSE 0 END) AS enforced
    FROM counted
    GROUP BY verdict, reason, agent
),
by_reason AS (
    SELECT
        verdict,
        reason,
        sum(runs) AS runs,
        sum(runs) / sum(sum(runs)) OVER (PARTITION BY verdict) AS share,
        sum(runs) / sum(sum(runs)) OVER () AS share_of_finished,
        sum(enforced)::BIGINT AS enforced,
        count(agent) AS agents,
        arg_min(agent, {'runs': -runs, 'agent': agent}) FILTER (agent IS NOT NULL) AS top_agent
    FROM by_agent
    GROUP BY verdict, reason
)
SELECT reason, runs::BIGINT AS runs, share, share_of_finished, enforced, agents, top_agent
FROM by_reason
WHERE verdict = 'FALSE_COMPLETE'
ORDER BY runs DESC, reason
LIMIT $limit
