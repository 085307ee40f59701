-- The rows at these places.
SELECT *
FROM verdicts
WHERE rowid IN (SELECT unnest($places))
ORDER BY opened_at DESC, run_id
