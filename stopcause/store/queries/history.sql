-- Every revision once, as it was when it held.
SELECT verdicts.*
FROM verdicts
WHERE run_id = $run_id AND sign = 1
ORDER BY attempt, revision
