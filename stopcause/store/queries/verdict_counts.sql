-- Runs by the verdict on their latest attempt; '' while it runs.
SELECT coalesce(verdict, '') AS name, sum(sign)::BIGINT
FROM verdicts
WHERE is_latest
GROUP BY name
HAVING sum(sign) > 0
ORDER BY name
