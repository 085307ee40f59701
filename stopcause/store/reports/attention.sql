-- name: attention
-- title: What needs somebody
-- question: Which groups need somebody, the most urgent first?
-- for: SRE in the morning
-- empty: Nothing needs you. `report verdicts-by-agent` shows how runs ended.
-- parameter: grace | duration | 2m | how old a wait without a route has to be; else the policy's unrouted_grace
-- column: place | count | - | 1 unrouted, 2 refuted, 3 STUCK, 4 FAILED, 5 FALSE_COMPLETE, 6 UNCERTAIN, 7 new bound
-- column: group | id | GROUP | the group; `explain` takes its last letters
-- column: verdict | verdict | VERDICT | its verdict
-- column: agent | text | AGENT | the agent's name
-- column: environment | text | - | prod, staging, ...
-- column: reason | text | REASON | which case of that verdict
-- column: runs | count | RUNS | its runs in the window; of waits without a route all, however old
-- column: first_at | ago | - | when the first of them stopped
-- column: last_at | ago | LAST | the newest record of any of them
-- column: owner | text | OWNER | who owns the agent, as the policy says
-- column: stage | text | - | observe or enforce, as the policy says
-- column: detail | text | - | what its runs share beside the reason
-- column: missing | words | - | what the newest of them lacks
-- column: is_new | flag | - | a bounded stop that the 30 days before the window do not have; others are not listed
-- column: run_id | id | - | the newest of them
-- What people said of a group is not looked at: `runs --attention` does that.
WITH candidates AS (
    SELECT sign, run_id, attempt, revision, fingerprint, verdict, reason, last_at, rowid AS row,
        coalesce(stopped_at, last_at) AS ended_at
    FROM verdicts
    WHERE is_latest AND hour <= $hour AND opened_at < $since AND verdict = 'WAITING_UNROUTED'
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
    UNION ALL
    SELECT sign, run_id, attempt, revision, fingerprint, verdict, reason, last_at, rowid AS row,
        coalesce(stopped_at, last_at) AS ended_at
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND (
            verdict IN ('WAITING_UNROUTED', 'STUCK', 'FAILED', 'UNCERTAIN', 'BOUNDED_STOP')
            OR verdict = 'FALSE_COMPLETE' AND stage = 'enforce' AND reason <> 'receipt_pending'
                AND (contract IS NOT NULL OR reason = 'receipt_refuted')
        )
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
),
wanted AS (
    SELECT *
    FROM candidates
    ANTI JOIN (SELECT run_id, attempt, revision FROM candidates WHERE sign = -1) AS gone
        USING (run_id, attempt, revision)
    WHERE sign = 1 AND NOT (verdict = 'WAITING_UNROUTED' AND ended_at <= $now AND ended_at > $now - $grace)
),
groups AS (
    SELECT
        CASE
            WHEN verdict = 'WAITING_UNROUTED' THEN 1
            WHEN reason = 'receipt_refuted' THEN 2
            WHEN verdict = 'STUCK' THEN 3
            WHEN verdict = 'FAILED' THEN 4
            WHEN verdict = 'FALSE_COMPLETE' THEN 5
            WHEN verdict = 'UNCERTAIN' THEN 6
            ELSE 7
        END AS place,
        fingerprint,
        count(*) AS runs,
        min(ended_at) AS first_at,
        max({'last_at': last_at, 'run_id': run_id, 'row': row}) AS newest
    FROM wanted
    GROUP BY place, fingerprint
),
seen AS (  -- what bounded stops there were before; where nothing was before, none is new
    SELECT fingerprint
    FROM verdicts
    WHERE is_latest AND verdict = 'BOUNDED_STOP'
        AND hour BETWEEN $hour - 720 AND $hour AND opened_at >= $since - INTERVAL 30 DAY AND opened_at < $since
    GROUP BY fingerprint
    HAVING sum(sign) > 0
    UNION
    SELECT fingerprint
    FROM groups
    WHERE place = 7 AND NOT EXISTS (FROM verdicts WHERE hour <= $hour AND opened_at < $since)
)
SELECT
    place,
    fingerprint AS "group",
    verdict,
    agent,
    environment,
    reason,
    runs,
    first_at,
    newest.last_at AS last_at,
    owner,
    stage,
    detail,
    missing,
    place = 7 AS is_new,
    newest.run_id AS run_id
FROM groups
JOIN (SELECT rowid AS row, verdict, agent, environment, reason, owner, stage, detail, missing FROM verdicts) AS v
    ON v.row = newest.row
WHERE place < 7 OR fingerprint NOT IN (SELECT fingerprint FROM seen)
ORDER BY place, last_at DESC, "group"
LIMIT $limit
