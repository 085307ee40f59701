-- When the newest thing happened that a run told of itself.
SELECT max(event_at)
FROM records
WHERE event_at BETWEEN $since AND $until AND starts_with(kind, 'run.')
