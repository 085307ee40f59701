-- How many runs have each sketch.
SELECT
    agent, agent_version, environment, framework, model, provider, service, contract, stop_cause, open_waits,
    is_recent, key, sum(sign)::BIGINT AS runs
FROM sketch
GROUP BY ALL
HAVING sum(sign) > 0
