INSERT INTO records
SELECT
    record_id::UUID, kind, run_id, attempt, event_at, opened_at,
    (epoch_us(opened_at) // 3600000000)::INTEGER, resumes_run_id, line
FROM batch
