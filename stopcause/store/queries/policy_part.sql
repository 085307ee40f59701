-- One of so many parts of the runs, whole.
SELECT run_id, line
FROM records
WHERE hash(run_id) % $parts = $part
