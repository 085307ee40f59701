-- Runs with records and no verdict: the classifier failed on them.
SELECT count(DISTINCT run_id) AS runs, max(run_id) AS one
FROM records ANTI JOIN verdicts USING (hour, run_id)
WHERE hour >= $hour AND run_id IS NOT NULL AND list_contains($kinds, kind)
