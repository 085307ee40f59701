-- name: versions
-- title: Versions side by side
-- question: Is a version really worse, or are there too few runs to say?
-- for: platform engineer after a release
-- since: 14d
-- empty: No run of that is here. Look further back with --since 30d, or at `runs --all`.
-- column: agent | text | AGENT | the agent's name
-- column: agent_version | text | VERSION | its version; the newest first
-- column: first_at | time | - | when its first run in the window opened; nothing without a version
-- column: runs | count | RUNS | its runs
-- column: ended | count | ENDED | runs that neither go on nor wait; shares are of these
-- column: verified_share | share | VERIFIED | VERIFIED_COMPLETE
-- column: verified_low | share | FROM | where the true share begins, by the Wilson score interval of 95 %
-- column: verified_high | share | TO | where it ends
-- column: bad_share | share | BAD | FAILED, STUCK, and FALSE_COMPLETE that is neither no_contract nor receipt_pending
-- column: bad_low | share | FROM | where the true share begins, by the same interval
-- column: bad_high | share | TO | where it ends
-- column: failed | count | - | runs that are FAILED: a failure ended it
-- column: waiting | count | - | runs that are WAITING: it waits, and somebody is named
-- column: waiting_unrouted | count | - | runs that are WAITING_UNROUTED: it waits, and something is missing
-- column: stuck | count | - | runs that are STUCK: it got nowhere
-- column: bounded_stop | count | - | runs that are BOUNDED_STOP: a bound, a denial or an abort ended it
-- column: verified_complete | count | - | runs that are VERIFIED_COMPLETE: finished, and a receipt proves it
-- column: false_complete | count | - | runs that are FALSE_COMPLETE: finished, and nothing proves it
-- column: uncertain | count | - | runs that are UNCERTAIN: the evidence contradicts itself or is missing
-- column: running | count | - | runs that go on
-- Rows that were taken back are in `first_at`: what a run once said of its version it says to its end.
WITH counted AS (
    SELECT
        agent,
        agent_version,
        verdict,
        verdict IN ('FAILED', 'STUCK')
            OR verdict = 'FALSE_COMPLETE' AND reason NOT IN ('no_contract', 'receipt_pending') AS is_bad,
        sum(sign) AS runs,
        min(opened_at) AS first_at
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
    GROUP BY agent, agent_version, verdict, is_bad
    HAVING sum(sign) > 0
),
mixed AS (
    SELECT
        agent,
        agent_version,
        CASE WHEN agent_version IS NOT NULL THEN min(first_at) END AS first_at,
        sum(runs)::BIGINT AS runs,
        sum(CASE WHEN verdict NOT IN ('WAITING', 'WAITING_UNROUTED') THEN runs ELSE 0 END)::BIGINT AS ended,
        sum(CASE WHEN is_bad THEN runs ELSE 0 END)::BIGINT AS bad,
        sum(CASE WHEN verdict = 'FAILED' THEN runs ELSE 0 END)::BIGINT AS failed,
        sum(CASE WHEN verdict = 'WAITING' THEN runs ELSE 0 END)::BIGINT AS waiting,
        sum(CASE WHEN verdict = 'WAITING_UNROUTED' THEN runs ELSE 0 END)::BIGINT AS waiting_unrouted,
        sum(CASE WHEN verdict = 'STUCK' THEN runs ELSE 0 END)::BIGINT AS stuck,
        sum(CASE WHEN verdict = 'BOUNDED_STOP' THEN runs ELSE 0 END)::BIGINT AS bounded_stop,
        sum(CASE WHEN verdict = 'VERIFIED_COMPLETE' THEN runs ELSE 0 END)::BIGINT AS verified_complete,
        sum(CASE WHEN verdict = 'FALSE_COMPLETE' THEN runs ELSE 0 END)::BIGINT AS false_complete,
        sum(CASE WHEN verdict = 'UNCERTAIN' THEN runs ELSE 0 END)::BIGINT AS uncertain,
        sum(CASE WHEN verdict IS NULL THEN runs ELSE 0 END)::BIGINT AS running
    FROM counted
    GROUP BY agent, agent_version
),
shared AS (
    SELECT
        *,
        verified_complete / nullif(ended, 0) AS verified_share,
        bad / nullif(ended, 0) AS bad_share,
        3.841458820694124 / nullif(ended, 0) AS z  -- the square of 1.96, the normal's 97.5 % point, over their number
    FROM mixed
),
spread AS (
    SELECT
        *,
        sqrt(z * (verified_share * (1 - verified_share) + z / 4)) AS verified_half,
        sqrt(z * (bad_share * (1 - bad_share) + z / 4)) AS bad_half
    FROM shared
)
SELECT
    agent,
    agent_version,
    first_at,
    runs,
    ended,
    verified_share,
    (verified_share + z / 2 - verified_half) / (1 + z) AS verified_low,
    (verified_share + z / 2 + verified_half) / (1 + z) AS verified_high,
    bad_share,
    (bad_share + z / 2 - bad_half) / (1 + z) AS bad_low,
    (bad_share + z / 2 + bad_half) / (1 + z) AS bad_high,
    failed,
    waiting,
    waiting_unrouted,
    stuck,
    bounded_stop,
    verified_complete,
    false_complete,
    uncertain,
    running
FROM spread
ORDER BY agent, first_at DESC, agent_version
LIMIT $limit
