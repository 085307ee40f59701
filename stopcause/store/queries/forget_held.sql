-- Runs of before an hour that are not over: they stay, whatever their age. A wait that was answered is over.
CREATE OR REPLACE TEMP TABLE held AS
SELECT
    run_id,
    CASE WHEN verdict IS NULL THEN 'running' WHEN starts_with(verdict, 'WAITING') THEN 'waiting' ELSE 'unsettled' END
        AS because
FROM runs
WHERE hour < $hour AND (verdict IS NULL OR NOT settled)
