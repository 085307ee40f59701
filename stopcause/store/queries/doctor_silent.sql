-- Services by how long they say nothing: `usual` is the longest of a hundred of their pauses, in steps of ten minutes.
WITH steps AS (
    SELECT DISTINCT coalesce(service, agent) AS name, epoch_us(opened_at) // 600000000 AS step
    FROM verdicts
    WHERE hour >= $hour AND opened_at <= $now AND coalesce(service, agent) IS NOT NULL
),
pauses AS (
    SELECT name, (step - lag(step) OVER (PARTITION BY name ORDER BY step)) * 600 AS pause FROM steps
),
usual AS (
    SELECT name, count(pause) AS pauses, quantile_disc(pause, 0.99) AS usual FROM pauses GROUP BY name
),
newest AS (
    SELECT coalesce(service, agent) AS name, max(last_at) AS last_at, max_by(run_id, last_at) AS run_id
    FROM verdicts
    WHERE hour >= $hour AND last_at <= $now
    GROUP BY name
)
SELECT name, last_at, run_id
FROM usual JOIN newest USING (name)
WHERE pauses >= $least AND epoch($now::TIMESTAMP) - epoch(last_at) > greatest($times * usual, $floor)
ORDER BY last_at DESC
