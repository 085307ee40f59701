-- By version, the runs of a group that started after something was said of it, and when that agent first had the
-- version in that environment.
WITH wanted AS (
    SELECT unnest($groups) AS fingerprint, unnest($times) AS said_at
),
later AS (
    SELECT w.fingerprint, w.said_at, v.agent, v.environment, v.agent_version,
        max(coalesce(v.started_at, v.opened_at)) AS newest_at
    FROM verdicts AS v
    JOIN wanted AS w USING (fingerprint)
    WHERE v.is_latest
        AND coalesce(v.started_at, v.opened_at) > w.said_at
        AND coalesce(v.started_at, v.opened_at) <= $until
    GROUP BY ALL
    HAVING sum(v.sign) > 0
),
first_seen AS (
    SELECT v.agent, v.environment, v.agent_version, min(coalesce(v.started_at, v.opened_at)) AS first_at
    FROM verdicts AS v
    SEMI JOIN later AS l ON v.agent_version = l.agent_version
        AND v.agent IS NOT DISTINCT FROM l.agent
        AND v.environment IS NOT DISTINCT FROM l.environment
    GROUP BY ALL
)
SELECT l.fingerprint, l.said_at, l.agent_version, l.newest_at, f.first_at
FROM later AS l
LEFT JOIN first_seen AS f ON f.agent_version = l.agent_version
    AND f.agent IS NOT DISTINCT FROM l.agent
    AND f.environment IS NOT DISTINCT FROM l.environment
ORDER BY l.newest_at DESC, l.agent_version
