-- name: verdicts-by-hour
-- title: Verdicts by hour
-- question: How did runs end, hour by hour?
-- for: SRE in the morning
-- empty: No run of that is here. Look further back with --since 30d, or at `runs --all`.
-- column: hour | time | HOUR | when the hour begins; an hour without a run is left out
-- column: runs | count | RUNS | runs that opened in it
-- column: failed | count | F | runs that are FAILED: a failure ended it
-- column: waiting | count | W | runs that are WAITING: it waits, and somebody is named
-- column: waiting_unrouted | count | R | runs that are WAITING_UNROUTED: it waits, and something is missing
-- column: stuck | count | S | runs that are STUCK: it got nowhere
-- column: bounded_stop | count | B | runs that are BOUNDED_STOP: a bound, a denial or an abort ended it
-- column: verified_complete | count | V | runs that are VERIFIED_COMPLETE: finished, and a receipt proves it
-- column: false_complete | count | C | runs that are FALSE_COMPLETE: finished, and nothing proves it
-- column: uncertain | count | U | runs that are UNCERTAIN: the evidence contradicts itself or is missing
-- column: running | count | > | runs that go on
WITH counted AS (
    SELECT hour, verdict, sum(sign) AS runs
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
    GROUP BY hour, verdict
)
SELECT
    make_timestamp(counted.hour * 3600000000::BIGINT) AS hour,
    sum(runs)::BIGINT AS runs,
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
GROUP BY counted.hour
HAVING sum(runs) > 0
ORDER BY counted.hour DESC
LIMIT $limit
