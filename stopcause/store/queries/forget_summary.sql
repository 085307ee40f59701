SELECT
    count(*) AS runs,
    coalesce(sum(records), 0)::BIGINT AS records,
    min(opened_at) AS first,
    max(opened_at) AS last,
    (SELECT count(*) FROM held WHERE because = 'waiting') AS waiting,
    (SELECT count(*) FROM held WHERE because = 'running') AS running,
    (SELECT count(*) FROM held WHERE because = 'unsettled') AS unsettled,
    (SELECT count(*) FROM held WHERE because = 'resumes') AS resuming
FROM forgotten
