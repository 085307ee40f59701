-- How many runs of a group ended after something was said of it, and before that.
SELECT
    w.fingerprint,
    coalesce(sum(sign) FILTER (ended_at > w.said_at), 0)::BIGINT AS later,
    coalesce(sum(sign) FILTER (ended_at > greatest(w.said_at, $day_ago)), 0)::BIGINT AS last_day,
    coalesce(sum(sign) FILTER (ended_at <= w.said_at AND ended_at > w.said_at - INTERVAL 1 DAY), 0)::BIGINT
        AS day_before,
    coalesce(sum(sign) FILTER (ended_at <= w.said_at AND ended_at > w.said_at - INTERVAL 7 DAY), 0)::BIGINT
        AS week_before
FROM (SELECT fingerprint, sign, is_latest, coalesce(stopped_at, last_at) AS ended_at FROM verdicts) AS v
JOIN (SELECT unnest($groups) AS fingerprint, unnest($times) AS said_at) AS w USING (fingerprint)
WHERE is_latest AND ended_at <= $until
GROUP BY w.fingerprint
