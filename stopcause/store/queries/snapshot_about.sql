CREATE TABLE fresh.snapshot AS
SELECT
    $taken_at::TIMESTAMP AS taken_at,
    (SELECT max(event_at) FROM live.records) AS newest_record_at,
    (SELECT count(*) FROM live.records) AS records,
    (SELECT coalesce(sum(sign), 0)::BIGINT FROM live.verdicts WHERE is_latest) AS runs,
    $stopcause AS stopcause_version,
    $classifier AS classifier_version
