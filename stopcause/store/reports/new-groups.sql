-- name: new-groups
-- title: Groups new with a version
-- question: What goes wrong since that version that did not before?
-- for: platform engineer after a release
-- since: 30d
-- empty: Nothing is new since that version. `report versions` lists the versions that there are.
-- parameter: version | text | newest | the agent_version; newest is the one of each agent that came last
-- column: group | id | GROUP | the group; `explain` takes its last letters
-- column: agent | text | AGENT | the agent's name
-- column: environment | text | - | prod, staging, ...
-- column: verdict | verdict | VERDICT | its verdict; what is VERIFIED_COMPLETE or goes on is left out
-- column: reason | text | REASON | which case of that verdict
-- column: detail | text | - | what its runs share beside the reason
-- column: version | text | - | the version
-- column: runs | count | RUNS | its runs, none of which opened before the version's first run
-- column: runs_of_version | count | OF IT | those of the version itself; the others run at the same time
-- column: first_at | ago | - | when the first of them opened
-- column: last_at | ago | LAST | the newest record of any of them
-- column: run_id | id | - | the newest of them
WITH latest AS (
    SELECT run_id, agent, agent_version, environment, verdict, reason, detail, fingerprint, opened_at, last_at
    FROM verdicts
    ANTI JOIN (SELECT run_id, attempt, revision FROM verdicts WHERE sign = -1 AND hour >= $hour) AS gone
        USING (run_id, attempt, revision)
    WHERE sign = 1 AND is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
),
versions AS (
    SELECT agent, agent_version, min(opened_at) AS first_at, min(min(opened_at)) OVER (PARTITION BY agent) AS begun_at
    FROM latest
    GROUP BY agent, agent_version
),
brought AS (  -- where there was nothing before, nothing is new
    SELECT
        agent,
        arg_max(agent_version, {'at': first_at, 'version': agent_version}) AS version,
        max(first_at) AS first_at
    FROM versions
    WHERE agent_version = $version OR $version = 'newest' AND agent_version IS NOT NULL
    GROUP BY agent
    HAVING max(first_at) > min(begun_at)
)
SELECT
    fingerprint AS "group",
    any_value(latest.agent) AS agent,
    any_value(environment) AS environment,
    any_value(verdict) AS verdict,
    any_value(reason) AS reason,
    any_value(detail) AS detail,
    any_value(version) AS version,
    count(*) AS runs,
    count(*) FILTER (agent_version = version) AS runs_of_version,
    min(opened_at) AS first_at,
    max(last_at) AS last_at,
    arg_max(run_id, {'at': last_at, 'run_id': run_id}) AS run_id
FROM latest JOIN brought ON latest.agent IS NOT DISTINCT FROM brought.agent
WHERE verdict <> 'VERIFIED_COMPLETE'
GROUP BY fingerprint
HAVING min(opened_at) >= min(brought.first_at) AND count(*) FILTER (agent_version = version) > 0
ORDER BY runs DESC, "group"
LIMIT $limit
