-- name: limits
-- title: Limits against use
-- question: Which agents come close to their limits, and which limits are never near?
-- for: platform engineer
-- empty: No run of the window declares a limit. `report unbounded` lists the agents without any.
-- column: agent | text | AGENT | the agent's name
-- column: limit_kind | text | LIMIT | steps, tokens, cost or time
-- column: runs | count | RUNS | runs that declare such a limit
-- column: measured | count | MEASURED | those of which the use is known, and the limit is not 0
-- column: p50_share | share | P50 USED | half of the measured used at most this share of it; above 1 it was passed
-- column: p95_share | share | P95 USED | 95 of 100 used at most this share
-- column: near | count | >= 80 % | measured runs that used 80 % of it or more
-- column: fired | count | FIRED | runs that it stopped
WITH wanted AS (
    SELECT
        agent,
        stop_cause,
        step_limit,
        steps,
        token_limit,
        coalesce(input_tokens + output_tokens, input_tokens, output_tokens) AS tokens,
        cost_limit,
        cost_usd,
        time_limit,
        duration_s
    FROM verdicts
    ANTI JOIN (SELECT run_id, attempt, revision FROM verdicts WHERE sign = -1 AND hour >= $hour) AS gone
        USING (run_id, attempt, revision)
    WHERE sign = 1 AND is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
        AND coalesce(step_limit, token_limit, cost_limit, time_limit) IS NOT NULL
),
bounds AS (
    SELECT agent, 'steps' AS kind, step_limit AS bound, steps::DOUBLE AS used, stop_cause = 'step_limit' AS fired
    FROM wanted
    WHERE step_limit IS NOT NULL
    UNION ALL
    SELECT agent, 'tokens' AS kind, token_limit AS bound, tokens::DOUBLE AS used, stop_cause = 'token_budget' AS fired
    FROM wanted
    WHERE token_limit IS NOT NULL
    UNION ALL
    SELECT agent, 'cost' AS kind, cost_limit AS bound, cost_usd AS used, stop_cause = 'cost_budget' AS fired
    FROM wanted
    WHERE cost_limit IS NOT NULL
    UNION ALL
    SELECT agent, 'time' AS kind, time_limit AS bound, duration_s AS used, stop_cause = 'time_limit' AS fired
    FROM wanted
    WHERE time_limit IS NOT NULL
),
shares AS (
    SELECT agent, kind, fired, CASE WHEN bound > 0 THEN used / bound END AS share
    FROM bounds
)
SELECT
    agent,
    kind AS limit_kind,
    count(*) AS runs,
    count(share) AS measured,
    quantile_cont(share, 0.5) AS p50_share,
    quantile_cont(share, 0.95) AS p95_share,
    count(*) FILTER (share >= 0.8) AS near,
    count(*) FILTER (fired) AS fired
FROM shares
GROUP BY agent, kind
ORDER BY agent, limit_kind
LIMIT $limit
