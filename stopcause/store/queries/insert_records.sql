INSERT INTO records BY NAME
SELECT
    * REPLACE (record_id::UUID AS record_id),
    (epoch_us(opened_at) // 3600000000)::INTEGER AS hour
FROM batch
