-- A run that takes up one that stays is part of the verdict on it, so it stays too.
INSERT INTO held
SELECT DISTINCT r.run_id, 'resumes'
FROM records AS r
SEMI JOIN forgotten AS f ON r.run_id = f.run_id
SEMI JOIN (
    SELECT DISTINCT run_id FROM records ANTI JOIN forgotten USING (run_id) WHERE run_id IS NOT NULL
) AS stays ON r.resumes_run_id = stays.run_id
WHERE r.resumes_run_id IS NOT NULL
RETURNING run_id
