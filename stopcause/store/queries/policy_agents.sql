-- Agents by where they run, the busiest first.
SELECT agent, environment, sum(sign)::BIGINT AS runs
FROM verdicts
WHERE is_latest AND hour >= $hour AND opened_at >= $since
GROUP BY agent, environment
HAVING sum(sign) > 0
ORDER BY runs DESC, agent, environment
LIMIT $most
