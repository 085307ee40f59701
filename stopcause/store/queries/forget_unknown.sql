-- Current rows of before `is_latest`: what waits cannot be told by them.
SELECT 1
FROM verdicts
WHERE is_latest IS NULL
GROUP BY run_id, attempt, revision
HAVING sum(sign) > 0
LIMIT 1
