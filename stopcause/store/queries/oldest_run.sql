-- Whether any run opened before a time, and when the first of those of the memory did.
SELECT count(*) > 0 AS is_anything, min(opened_at) FILTER (opened_at >= $memory) AS oldest
FROM verdicts
WHERE hour <= $last_hour AND opened_at < $since
