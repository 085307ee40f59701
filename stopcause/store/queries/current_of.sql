-- The revisions that hold now for the runs of `wanted`: a superseded one is there a second time with sign -1.
SELECT verdicts.*
FROM verdicts SEMI JOIN wanted USING (run_id)
QUALIFY sum(sign) OVER (PARTITION BY run_id, attempt, revision) > 0
