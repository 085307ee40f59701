SELECT DISTINCT run_id
FROM (
    SELECT run_id
    FROM verdicts
    WHERE hour BETWEEN $first AND $last AND (policy_digest <> $digest OR classifier_version <> $classifier)
    GROUP BY run_id, attempt, revision
    HAVING sum(sign) > 0
)
