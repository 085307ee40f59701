-- The stop receipts of runs that opened in these hours.
SELECT run_id, attempt, line
FROM records
WHERE kind = 'run.stopped' AND hour BETWEEN $first AND $last
