-- How often groups were seen before a time: ever in the memory, and in the windows that make up their usual rate.
SELECT
    fingerprint,
    sum(sign)::BIGINT AS earlier,
    coalesce(sum(sign) FILTER (opened_at >= $usual), 0)::BIGINT AS recent
FROM verdicts
SEMI JOIN (SELECT unnest($groups) AS fingerprint) AS wanted USING (fingerprint)
WHERE is_latest AND hour BETWEEN $hour AND $last_hour AND opened_at >= $memory AND opened_at < $since
GROUP BY fingerprint
HAVING sum(sign) > 0
