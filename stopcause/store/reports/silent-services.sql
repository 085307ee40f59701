-- name: silent-services
-- title: Services that went silent
-- question: Which services stopped reporting?
-- for: SRE on an alert
-- since: 14d
-- empty: No service is silent for longer than usual. `doctor` says whether anything reports at all.
-- parameter: times | number | 3 | how many times its usual gap a service has to be silent
-- column: service | text | SERVICE | the service; the agent where runs do not say their service
-- column: last_at | ago | SILENT | its newest record; one from the future is passed over
-- column: usual_gap_s | seconds | USUAL GAP | half of the time falls into gaps no longer than this, in seconds
-- column: times_over | number | TIMES OVER | how many of its usual gaps it has been silent
-- column: longest_gap_s | seconds | LONGEST | its longest gap in the window, in seconds
-- column: runs | count | RUNS | its runs in the window; with fewer than 4 there is no saying what is usual
-- In steps of five minutes: what happens within one is one burst. The time that a gap takes is its weight, so that a
-- burst of a thousand runs counts for no more than the minutes that it took, and nights count for what they are.
WITH steps AS (
    SELECT
        coalesce(service, agent) AS name,
        epoch_us(opened_at) // 300000000 AS step,
        sum(sign) AS runs,
        max(last_at) FILTER (last_at <= $now) AS last_at
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
        AND opened_at <= $now AND coalesce(service, agent) IS NOT NULL
    GROUP BY name, step
    HAVING sum(sign) > 0
),
gaps AS (
    SELECT name AS service, step - lag(step) OVER (PARTITION BY name ORDER BY step) AS gap, runs, last_at
    FROM steps
),
weighed AS (
    SELECT
        *,
        sum(gap) OVER (PARTITION BY service ORDER BY gap NULLS FIRST ROWS UNBOUNDED PRECEDING) AS upto,
        sum(gap) OVER (PARTITION BY service) AS total
    FROM gaps
),
services AS (
    SELECT
        service,
        max(last_at) AS last_at,
        coalesce(min(gap) FILTER (2 * upto >= total), 1) * 300::DOUBLE AS usual_gap_s,
        max(gap) * 300::DOUBLE AS longest_gap_s,
        sum(runs)::BIGINT AS runs
    FROM weighed
    GROUP BY service
)
SELECT
    service,
    last_at,
    usual_gap_s,
    (epoch_us($now::TIMESTAMP) - epoch_us(last_at)) / 1e6 / usual_gap_s AS times_over,
    longest_gap_s,
    runs
FROM services
WHERE runs >= 4 AND times_over >= $times
ORDER BY times_over DESC, service
LIMIT $limit
