INSERT INTO verdicts BY NAME
SELECT *, (epoch_us(opened_at) // 3600000000)::INTEGER AS hour
FROM batch
