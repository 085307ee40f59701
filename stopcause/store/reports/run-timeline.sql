-- name: run-timeline
-- title: Timeline of a run
-- question: What happened in this run, in order?
-- for: SRE on an alert
-- empty: No record of that run is here. `runs --all` lists the runs.
-- parameter: run | run | required | the run, or the only beginning or end of its name
-- column: at | moment | AT | when it happened, by the writer's clock
-- column: run_id | text | - | the run
-- column: attempt | count | TRY | which execution of the run
-- column: kind | text | KIND | what the record is
-- column: what | text | WHAT | resumed run, stop cause, sign of progress, decision or state, polarity, cause of death
-- column: about | text | ABOUT | the approval, the contract and check, the tool, the error's type, the agent
-- column: by | text | BY | who said it: actor, issuer or owner; else where it was seen
-- column: record_id | text | - | the record
-- Inside an attempt records stand as the classifier reads them: by `seq` where all have one, else by time. Only named
-- fields of a line are read, and a resume token is none of them.
WITH wanted AS (
    SELECT records.*, (line->>'$.seq')::BIGINT AS seq
    FROM records
    WHERE rowid IN (SELECT rowid FROM records WHERE run_id = $run)
)
SELECT
    event_at AS at,
    run_id,
    attempt,
    kind,
    CASE kind
        WHEN 'run.started' THEN 'resumes=' || resumes_run_id
        WHEN 'run.stopped' THEN concat_ws('/', line->>'$.stop_cause', line->>'$.reason_code')
        WHEN 'run.progress' THEN line->>'$.sign'
        WHEN 'approval.updated' THEN coalesce(line->>'$.approval.decision', line->>'$.approval.state')
        WHEN 'outcome.recorded'
            THEN nullif(concat_ws('/', line->>'$.outcome.polarity', line->>'$.outcome.strength'), '')
        WHEN 'run.died' THEN coalesce(line->>'$.reason', 'exit_code=' || (line->>'$.exit_code'))
    END AS what,
    CASE kind
        WHEN 'run.started' THEN nullif(concat_ws('/', line->>'$.agent', line->>'$.agent_version'), '')
        WHEN 'run.stopped' THEN coalesce(
            nullif(array_to_string((line->>'$.approvals[*].approval_id')::VARCHAR[], ','), ''),
            nullif(concat_ws('/', line->>'$.error.tool', line->>'$.error.type'), '')
        )
        WHEN 'approval.updated' THEN concat_ws('/', line->>'$.approval.approval_id', line->>'$.approval.tool')
        WHEN 'outcome.recorded'
            THEN nullif(concat_ws('/', line->>'$.outcome.contract', line->>'$.outcome.check'), '')
    END AS about,
    coalesce(
        CASE kind
            WHEN 'run.stopped' THEN line->>'$.abort.actor'
            WHEN 'approval.updated' THEN coalesce(line->>'$.approval.actor', line->>'$.approval.owner')
            WHEN 'outcome.recorded'
                THEN nullif(concat_ws(':', line->>'$.outcome.issuer.type', line->>'$.outcome.issuer.id'), '')
        END,
        line->>'$.boundary'
    ) AS by,
    record_id::VARCHAR AS record_id
FROM wanted
ORDER BY
    attempt,
    CASE WHEN bool_and(seq IS NOT NULL OR kind = 'outcome.recorded') OVER (PARTITION BY attempt)
        THEN coalesce(seq, 0)
    END,
    event_at,
    wanted.record_id
LIMIT $limit
