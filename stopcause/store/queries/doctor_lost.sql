-- What writers say that they lost, and numbers that are missing between the first and the last of a writer's records.
WITH lines AS (
    SELECT
        run_id,
        attempt,
        line->>'$.adapter' AS adapter,
        TRY_CAST(line->>'$.seq' AS BIGINT) AS seq,
        TRY_CAST(line->>'$.dropped' AS BIGINT) AS dropped
    FROM records
    WHERE hour >= $hour
),
holes AS (
    SELECT run_id, max(seq) - min(seq) + 1 - count(DISTINCT seq) AS missing
    FROM lines
    WHERE seq IS NOT NULL
    GROUP BY run_id, attempt, adapter
    HAVING missing > 0
)
SELECT
    (SELECT coalesce(sum(dropped), 0)::BIGINT FROM lines) AS dropped,
    (SELECT max(run_id) FROM lines WHERE dropped > 0) AS dropped_in,
    (SELECT coalesce(sum(missing), 0)::BIGINT FROM holes) AS missing,
    (SELECT count(DISTINCT run_id) FROM holes) AS runs_with_holes,
    (SELECT max(run_id) FROM holes) AS hole_in
