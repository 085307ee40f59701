-- When the newest thing happened that a run told of itself; what people said since is later.
SELECT max(event_at)
FROM records
WHERE starts_with(kind, 'run.') AND event_at <= $until
