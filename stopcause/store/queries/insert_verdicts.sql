INSERT INTO verdicts
SELECT *, (epoch_us(opened_at) // 3600000000)::INTEGER
FROM batch
