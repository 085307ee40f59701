SELECT run_id, opened_at, line
FROM records SEMI JOIN wanted USING (run_id)
