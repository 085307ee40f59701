-- A cancelled row equals its -1 row in every other column, so filtering first loses nothing.
SELECT DISTINCT run_id
FROM (
    SELECT run_id
    FROM verdicts
    WHERE judge_again_at <= $now
    GROUP BY run_id, attempt, revision
    HAVING sum(sign) > 0
)
