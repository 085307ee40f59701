-- How many runs and agents a list covers, and in which environments; '' is none.
SELECT
    coalesce(sum(sign), 0)::BIGINT AS runs,
    count(DISTINCT coalesce(agent, '')) AS agents,
    coalesce(list(DISTINCT coalesce(environment, '')), []) AS environments
FROM verdicts
WHERE is_latest
    AND hour >= $hour
    AND opened_at >= $since
    AND (len($verdicts) = 0 OR list_contains($verdicts, coalesce(verdict, '')))
    AND ($agent IS NULL OR agent = $agent)
