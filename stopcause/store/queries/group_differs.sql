-- How many runs of a group, and how many other runs of its agent in the same time, have which value of what a run
-- comes with. The row without a field counts all of them.
WITH told AS (
    SELECT
        fingerprint = $fingerprint AS is_inside,
        sign,
        agent_version, model, provider, adapter_version, framework_version, environment, service
    FROM verdicts
    WHERE is_latest
        AND hour BETWEEN $hour AND $last_hour
        AND opened_at BETWEEN $first AND $last
        AND agent IS NOT DISTINCT FROM $agent
        AND verdict IS NOT NULL
)
SELECT
    CASE
        WHEN grouping(agent_version) = 0 THEN 'agent_version'
        WHEN grouping(model) = 0 THEN 'model'
        WHEN grouping(provider) = 0 THEN 'provider'
        WHEN grouping(adapter_version) = 0 THEN 'adapter_version'
        WHEN grouping(framework_version) = 0 THEN 'framework_version'
        WHEN grouping(environment) = 0 THEN 'environment'
        WHEN grouping(service) = 0 THEN 'service'
    END AS field,
    coalesce(agent_version, model, provider, adapter_version, framework_version, environment, service) AS value,
    coalesce(sum(sign) FILTER (is_inside), 0)::BIGINT AS inside,
    coalesce(sum(sign) FILTER (NOT is_inside), 0)::BIGINT AS outside
FROM told
GROUP BY GROUPING SETS (
    (agent_version), (model), (provider), (adapter_version), (framework_version), (environment), (service), ()
)
