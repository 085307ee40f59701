-- name: uncertain-by-hook
-- title: Uncertain runs by hook
-- question: Is it a hook that leaves us without evidence, rather than an agent?
-- for: platform engineer
-- empty: No run of that is here. Look further back with --since 30d, or at `runs --all`.
-- column: adapter | text | HOOK | the hook or reader that made the records
-- column: adapter_version | text | VERSION | its version
-- column: runs | count | RUNS | runs that it told of
-- column: uncertain | count | UNCERTAIN | those that are UNCERTAIN
-- column: share | share | SHARE | of its runs
-- column: top_reason | text | MOST BECAUSE OF | the most common reason of those
-- column: top_reason_runs | count | RUNS | how many have it
WITH counted AS (
    SELECT
        adapter,
        adapter_version,
        verdict IS NOT DISTINCT FROM 'UNCERTAIN' AS is_uncertain,
        CASE WHEN verdict = 'UNCERTAIN' THEN reason END AS why,
        sum(sign) AS runs
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
    GROUP BY adapter, adapter_version, is_uncertain, why
    HAVING sum(sign) > 0
)
SELECT
    adapter,
    adapter_version,
    sum(runs)::BIGINT AS runs,
    sum(CASE WHEN is_uncertain THEN runs ELSE 0 END)::BIGINT AS uncertain,
    sum(CASE WHEN is_uncertain THEN runs ELSE 0 END) / sum(runs) AS share,
    arg_min(why, {'runs': -runs, 'why': why}) FILTER (is_uncertain) AS top_reason,
    max(runs) FILTER (is_uncertain)::BIGINT AS top_reason_runs
FROM counted
GROUP BY adapter, adapter_version
ORDER BY share DESC, runs DESC, adapter, adapter_version
LIMIT $limit
