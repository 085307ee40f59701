SELECT DISTINCT (hour // 24)::INTEGER AS day
FROM records
WHERE hour >= $first AND hour < $last
ORDER BY day
