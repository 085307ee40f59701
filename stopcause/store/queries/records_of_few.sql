-- Lines are long and compressed: find the rows by their keys first, then read only those lines.
SELECT run_id, opened_at, line
FROM records
WHERE rowid IN (SELECT records.rowid FROM records SEMI JOIN wanted USING (run_id))
