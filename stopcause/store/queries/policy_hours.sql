-- How many runs opened in each hour, the oldest first.
SELECT hour, sum(sign)::BIGINT AS runs
FROM verdicts
WHERE is_latest AND hour >= $first AND opened_at >= $since
GROUP BY hour
HAVING sum(sign) > 0
ORDER BY hour
