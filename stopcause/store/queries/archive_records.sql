-- The records of the runs that opened in a day, in the order in which they were taken in.
SELECT * REPLACE (record_id::VARCHAR AS record_id)
FROM records
WHERE hour >= $first AND hour < $last
