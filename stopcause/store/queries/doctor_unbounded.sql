-- Runs that declared no bound at all, how many agents they are of, and the newest of them.
SELECT count(*) AS runs, count(DISTINCT agent) AS agents, max_by(run_id, opened_at) AS newest
FROM runs
WHERE hour >= $hour AND list_contains(findings, 'unbounded')
