-- What holds of the runs that opened in a day, of every attempt.
SELECT v.*
FROM verdicts AS v
ANTI JOIN (
    SELECT run_id, attempt, revision FROM verdicts WHERE sign = -1 AND hour >= $first AND hour < $last
) AS gone
    ON v.run_id = gone.run_id AND v.attempt = gone.attempt AND v.revision = gone.revision
WHERE v.sign = 1 AND v.hour >= $first AND v.hour < $last
