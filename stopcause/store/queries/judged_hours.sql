-- How many rows of each hour may have a verdict that was given since then, the oldest hour first.
SELECT hour, count(*) AS rows
FROM verdicts
WHERE sign = 1 AND is_latest AND as_of >= $since
GROUP BY hour
ORDER BY hour
