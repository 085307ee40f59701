-- How many runs and agents a list covers, and in which environments.
SELECT
    coalesce(sum(sign), 0)::BIGINT AS runs,
    count(DISTINCT coalesce(agent, '')) AS agents,
    coalesce(list(DISTINCT environment) FILTER (environment IS NOT NULL), []) AS environments
FROM verdicts
WHERE is_latest
    AND hour >= $hour
    AND opened_at >= $since
    AND (len($verdicts) = 0 OR list_contains($verdicts, coalesce(verdict, '')))
    AND ($agent IS NULL OR agent = $agent)
