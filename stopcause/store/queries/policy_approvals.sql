-- What was asked for, and by whom: approvals by what the `match` of a route asks, the most first.
SELECT
    agent, agent_version, environment, framework, model, provider, service, wait.kind, wait.tool,
    sum(sign)::BIGINT AS approvals
FROM (
    SELECT agent, agent_version, environment, framework, model, provider, service, sign, unnest(waits) AS wait
    FROM verdicts
    WHERE hour >= $hour AND opened_at >= $since AND len(waits) > 0
)
GROUP BY ALL
HAVING sum(sign) > 0
ORDER BY approvals DESC, wait.kind, wait.tool
LIMIT $most
