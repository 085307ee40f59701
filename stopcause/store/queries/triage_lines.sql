-- Everything that people said about groups.
SELECT line
FROM records
WHERE kind = 'triage.updated'
