-- Records of the future, and clocks that were put back: made later (by their ids) than one that says that it is newer.
WITH lately AS (
    SELECT run_id, event_at, lag(event_at) OVER (PARTITION BY run_id, attempt ORDER BY record_id) AS before
    FROM records
    WHERE hour >= $hour AND starts_with(kind, 'run.') AND uuid_extract_version(record_id) = 7
)
SELECT
    (SELECT count(*) FROM records WHERE hour >= $hour AND event_at > $soon) AS ahead,
    (SELECT max_by(run_id, event_at) FROM records WHERE hour >= $hour AND event_at > $soon) AS ahead_in,
    (SELECT max(event_at) FROM records WHERE hour >= $hour) AS newest,
    count(*) FILTER (before - event_at > $skew) AS back,
    max(run_id) FILTER (before - event_at > $skew) AS back_in
FROM lately
