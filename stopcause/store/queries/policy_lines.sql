-- The records of the runs that have one of these sketches. A run's records share its `opened_at`.
SELECT records.run_id, records.line
FROM records
SEMI JOIN (
    SELECT run_id FROM sketch WHERE key IN (SELECT unnest($keys)) GROUP BY run_id HAVING sum(sign) > 0
) AS wanted USING (run_id)
WHERE records.hour BETWEEN $first AND $last AND records.opened_at >= $since AND records.opened_at < $until
