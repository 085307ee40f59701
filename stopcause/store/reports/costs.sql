-- name: costs
-- title: Cost by owner and verdict
-- question: What did runs cost, and how much of it went into runs that did not get there?
-- for: whoever pays
-- since: 7d
-- empty: No run of that is here. Look further back with --since 30d, or at `runs --all`.
-- column: owner | text | OWNER | who owns the agent, as the policy says
-- column: verdict | verdict | VERDICT | the verdict; nothing while it runs
-- column: runs | count | RUNS | their runs
-- column: runs_with_cost | count | WITH COST | those that say what they cost
-- column: cost_usd | dollars | COST USD | what those cost together, in US dollars
-- column: share | share | SHARE | of all cost in the window
-- column: cost_per_run_usd | dollars | A RUN | the mean of those that say it, in US dollars
WITH counted AS (
    SELECT
        owner,
        verdict,
        sum(sign)::BIGINT AS runs,
        sum(CASE WHEN cost_usd IS NULL THEN 0 ELSE sign END)::BIGINT AS runs_with_cost,
        sum(sign * cost_usd) AS total
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
    GROUP BY owner, verdict
    HAVING sum(sign) > 0
)
SELECT
    owner,
    verdict,
    runs,
    runs_with_cost,
    CASE WHEN runs_with_cost > 0 THEN total END AS cost_usd,
    cost_usd / nullif(sum(CASE WHEN runs_with_cost > 0 THEN total END) OVER (), 0) AS share,
    cost_usd / runs_with_cost AS cost_per_run_usd
FROM counted
ORDER BY cost_usd DESC NULLS LAST, runs DESC, owner, verdict
LIMIT $limit
