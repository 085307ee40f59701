-- Runs by verdict and agent, and whether they are older than the list.
SELECT coalesce(verdict, '') AS verdict, agent, opened_at < $since AS is_older, sum(sign)::BIGINT AS runs
FROM verdicts
WHERE is_latest
    AND (len($verdicts) = 0 OR list_contains($verdicts, coalesce(verdict, '')))
    AND ($agent IS NULL OR agent = $agent)
GROUP BY ALL
HAVING sum(sign) > 0
