-- Runs that are called this, else those that begin or end with it.
SELECT DISTINCT run_id, run_id = $name AS is_exact
FROM verdicts
WHERE run_id = $name OR starts_with(run_id, $name) OR ends_with(run_id, $name)
ORDER BY is_exact DESC, run_id
LIMIT 6
