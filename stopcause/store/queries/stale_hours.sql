-- How many current rows of each hour were judged by another policy or classifier.
SELECT hour, sum(sign)::BIGINT AS stale
FROM verdicts
WHERE policy_digest <> $digest OR classifier_version <> $classifier
GROUP BY hour
HAVING sum(sign) > 0
ORDER BY hour
