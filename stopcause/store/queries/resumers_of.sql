-- Runs that say that they take up a run of `wanted`.
SELECT DISTINCT records.resumes_run_id, records.run_id
FROM records SEMI JOIN wanted ON records.resumes_run_id = wanted.run_id
