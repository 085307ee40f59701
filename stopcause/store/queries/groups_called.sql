-- The groups whose fingerprint ends so, the newest first.
SELECT fingerprint, any_value(verdict) AS verdict, any_value(agent) AS agent
FROM verdicts
WHERE is_latest AND hour >= $hour AND verdict IS NOT NULL AND ends_with(fingerprint, $name)
GROUP BY fingerprint
HAVING sum(sign) > 0
ORDER BY max(opened_at) DESC, fingerprint
LIMIT 10
