-- How many records each hour since $hour has, the newest hour first.
SELECT hour, count(*) AS records
FROM records
WHERE hour >= $hour
GROUP BY hour
ORDER BY hour DESC
