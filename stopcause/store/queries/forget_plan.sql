CREATE OR REPLACE TEMP TABLE forgotten AS
SELECT run_id, any_value(opened_at) AS opened_at, count(*) AS records
FROM records
WHERE hour < $hour AND run_id IS NOT NULL AND run_id NOT IN (SELECT run_id FROM held)
GROUP BY run_id
