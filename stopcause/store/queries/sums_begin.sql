-- Since when sums over all history only rise.
SELECT max(began_at)
FROM (
    SELECT min(applied_at) AS began_at FROM schema_migrations
    UNION ALL
    SELECT max(done_at) FROM forgettings
)
