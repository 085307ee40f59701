-- Whom a policy can be about: runs by what a `match` asks, the most first. Cancelled rows cancel out.
SELECT
    agent, agent_version, environment, framework, model, provider, service, contract, sum(sign)::BIGINT AS runs
FROM verdicts
WHERE is_latest AND hour >= $hour AND opened_at >= $since
GROUP BY ALL
HAVING sum(sign) > 0
ORDER BY runs DESC, agent, environment
LIMIT $most
