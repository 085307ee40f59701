-- What verdicts became under one policy, against what the policy before said of the same attempts.
SELECT before.verdict, before.reason, after.verdict, after.reason, count(*)
FROM (
    SELECT
        arg_max({'verdict': verdict, 'reason': reason}, revision) FILTER (WHERE policy_digest = $digest) AS after,
        arg_max({'verdict': verdict, 'reason': reason}, revision) FILTER (WHERE policy_digest <> $digest) AS before,
        max(revision) FILTER (WHERE policy_digest = $digest) AS after_revision,
        max(revision) FILTER (WHERE policy_digest <> $digest) AS before_revision
    FROM verdicts
    WHERE sign = 1 AND hour BETWEEN $first AND $last
    GROUP BY run_id, attempt
)
WHERE after_revision > before_revision AND before IS DISTINCT FROM after
GROUP BY ALL
