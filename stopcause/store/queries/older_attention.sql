-- Runs from before a list that needed somebody; waits without a route are in the list however old they are.
SELECT coalesce(sum(sign), 0)::BIGINT AS runs
FROM verdicts
WHERE is_latest
    AND hour BETWEEN $first_hour AND $hour
    AND opened_at < $since
    AND (
        verdict IN ('FAILED', 'STUCK', 'UNCERTAIN')
        OR verdict = 'FALSE_COMPLETE' AND stage = 'enforce' AND reason <> 'receipt_pending'
            AND (contract IS NOT NULL OR reason = 'receipt_refuted')
    )
    AND (len($verdicts) = 0 OR list_contains($verdicts, verdict))
    AND ($agent IS NULL OR agent = $agent)
