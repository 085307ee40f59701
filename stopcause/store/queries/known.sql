-- Which rows of `wanted` (i, record_id, event_at) are records of this store already.
SELECT w.i
FROM (SELECT i, record_id::UUID AS record_id, event_at FROM wanted) AS w
SEMI JOIN records USING (record_id, event_at)
