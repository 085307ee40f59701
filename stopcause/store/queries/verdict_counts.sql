-- Runs by the verdict on their latest attempt; '' while it runs. Signs add up, so only later attempts are looked for.
SELECT coalesce(v.verdict, '') AS name, sum(v.sign)::BIGINT
FROM verdicts AS v
ANTI JOIN (
    SELECT run_id, attempt FROM verdicts WHERE attempt > 1
    GROUP BY run_id, attempt HAVING sum(sign) > 0
) AS later
    ON v.run_id = later.run_id AND v.attempt < later.attempt
GROUP BY name
HAVING sum(v.sign) > 0
ORDER BY name
