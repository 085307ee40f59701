-- name: unbounded
-- title: Agents without any bound
-- question: Which agents could run for ever?
-- for: platform engineer
-- since: 7d
-- empty: Every run of the window declares a bound. `report limits` shows how near they come to it.
-- column: agent | text | AGENT | the agent's name
-- column: environment | text | ENV | prod, staging, ...
-- column: owner | text | OWNER | who owns it, as the policy says
-- column: runs | count | RUNS | its runs
-- column: unbounded | count | UNBOUNDED | those that declare no limit on steps, tokens, cost or time
-- column: share | share | SHARE | of its runs
-- column: cost_usd | dollars | COST USD | what the unbounded ones cost, in US dollars, where they say it
WITH counted AS (
    SELECT
        agent,
        environment,
        owner,
        sum(sign)::BIGINT AS runs,
        sum(CASE WHEN list_contains(findings, 'unbounded') THEN sign ELSE 0 END)::BIGINT AS unbounded,
        sum(CASE WHEN list_contains(findings, 'unbounded') AND cost_usd IS NOT NULL THEN sign END) AS runs_with_cost,
        sum(CASE WHEN list_contains(findings, 'unbounded') THEN sign * cost_usd END) AS total
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
    GROUP BY agent, environment, owner
)
SELECT
    agent,
    environment,
    owner,
    runs,
    unbounded,
    unbounded / runs AS share,
    CASE WHEN runs_with_cost > 0 THEN total END AS cost_usd
FROM counted
WHERE unbounded > 0
ORDER BY unbounded DESC, agent, environment, owner
LIMIT $limit
