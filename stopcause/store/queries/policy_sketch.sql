-- The latest attempt of each run, as `pipeline.policy_touch` sketches it. `key` stands for all of a sketch. A cancelled
-- row equals its -1 row in every column, so sums over `sign` count current rows only.
SELECT
    *,
    (hash(
        agent, agent_version, environment, framework, model, provider, service, contract, stop_cause, open_waits,
        is_recent
    ) >> 1)::BIGINT AS key
FROM (
    SELECT
        run_id,
        sign,
        agent,
        agent_version,
        environment,
        framework,
        model,
        provider,
        service,
        contract,
        stop_cause,
        list_sort(list_distinct([
            {'kind': w.kind, 'tool': w.tool} FOR w IN waits
            IF w.resolution IS NULL OR w.resolution IN ('over', 'expired')
        ])) AS open_waits,
        greatest(last_at, stopped_at) > $fresh AS is_recent
    FROM verdicts
    WHERE is_latest AND hour BETWEEN $first AND $last AND opened_at >= $since AND opened_at < $until
)
