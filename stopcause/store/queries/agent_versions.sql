-- The versions that runs of an agent had, the newest first.
SELECT agent_version
FROM verdicts
WHERE agent IS NOT DISTINCT FROM $agent AND agent_version IS NOT NULL
GROUP BY agent_version
HAVING sum(sign) > 0
ORDER BY max(opened_at) DESC, agent_version
