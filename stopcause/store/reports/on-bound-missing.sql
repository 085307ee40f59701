-- name: on-bound-missing
-- title: Bounds without on_bound
-- question: Where does a bound fire, and the policy does not say what to do then?
-- for: SRE who writes the policy
-- since: 7d
-- empty: Every bounded stop of the window has an on_bound in the policy, or there was none.
-- column: agent | text | AGENT | the agent's name
-- column: environment | text | ENV | prod, staging, ...
-- column: stop_cause | text | CAUSE | what ended it
-- column: owner | text | OWNER | who owns it, as the policy says
-- column: runs | count | RUNS | its runs that a bound ended (no abort, denial or expiry) of which the policy's entry has no on_bound
-- column: cost_usd | dollars | COST USD | what they cost, in US dollars, where they say it
SELECT
    agent,
    environment,
    stop_cause,
    owner,
    sum(sign)::BIGINT AS runs,
    CASE WHEN sum(CASE WHEN cost_usd IS NOT NULL THEN sign END) > 0 THEN sum(sign * cost_usd) END AS cost_usd
FROM verdicts
WHERE is_latest AND verdict = 'BOUNDED_STOP' AND NOT has_on_bound AND hour >= $hour AND opened_at >= $since
    AND reason NOT IN ('approval_denied', 'approval_expired', 'user_abort', 'caller_abort', 'platform_abort')
    AND ($agent IS NULL OR agent = $agent)
    AND ($environment IS NULL OR environment = $environment)
GROUP BY agent, environment, stop_cause, owner
HAVING sum(sign) > 0
ORDER BY runs DESC, agent, environment, stop_cause, owner
LIMIT $limit
