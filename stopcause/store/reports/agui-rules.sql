-- name: agui-rules
-- title: Rules of AG-UI that were broken
-- question: Which side of which integration breaks which rule, since which version?
-- for: platform engineer between two teams
-- since: 14d
-- empty: No run that came by AG-UI broke one. Look further back with --since 30d, or at a file with `agui audit`.
-- column: integration | text | INTEGRATION | the package that speaks AG-UI for the agent; ag-ui where nobody said
-- column: version | text | VERSION | its version; of ag-ui the protocol's, and nothing before 1.0
-- column: rule | text | RULE | its number, as `rules --agui` has it
-- column: finding | text | FINDING | its name
-- column: whose | text | WHOSE | producer, consumer, or auditor: nobody's fault
-- column: level | text | LEVEL | how much it weighs in the contract that the run is read by
-- column: contract | text | - | which that is: 1.0, or before where RUN_STARTED declared no version
-- column: runs | count | RUNS | runs in which it was found
-- column: share | share | SHARE | of that version's runs
-- column: last_at | time | - | when it was last
-- column: run_id | id | - | the last of these runs
-- NOTEs are left out. What the producer broke comes first: the application's faults are not the integration's.
WITH rules(code, rule, finding, whose, level, level_before) AS (
    VALUES
    -- [[[cog
    -- import sys; sys.path.insert(0, "docs")
    -- import agui_tables
    -- cog.outl(agui_tables.broken_rules())
    -- ]]]
    ('frame_unreadable', 'R0', 'FRAME_UNREADABLE', 'producer', 'MUST', 'MUST'),
    ('first_event', 'R1', 'FIRST_EVENT', 'producer', 'MUST', 'MUST'),
    ('nested_run', 'R2', 'NESTED_RUN', 'producer', 'MUST', 'MUST'),
    ('event_after_close', 'R3', 'EVENT_AFTER_CLOSE', 'producer', 'MUST', 'MUST'),
    ('second_terminal', 'R3', 'SECOND_TERMINAL', 'producer', 'MUST', 'MUST'),
    ('truncated', 'R5', 'TRUNCATED', 'producer', 'MUST', 'MUST'),
    ('run_id_mismatch', 'R6', 'RUN_ID_MISMATCH', 'producer', 'MUST', 'MUST'),
    ('thread_id_mismatch', 'R6', 'THREAD_ID_MISMATCH', 'producer', 'MUST', 'MUST'),
    ('open_at_finish', 'R7', 'OPEN_AT_FINISH', 'producer', 'MUST', 'MUST'),
    ('unbalanced', 'R8', 'UNBALANCED', 'producer', 'MUST', 'MUST'),
    ('step_unbalanced', 'R9', 'STEP_UNBALANCED', 'producer', 'MUST', 'MUST'),
    ('malformed', 'R10', 'MALFORMED', 'producer', 'MUST', 'MUST'),
    ('null_field', 'R11', 'NULL_FIELD', 'producer', 'MUST', 'NOTE'),
    ('unknown_outcome', 'R13', 'UNKNOWN_OUTCOME', 'producer', 'MUST', 'MUST'),
    ('version_unreadable', 'R14', 'VERSION_UNREADABLE', 'producer', 'WARN', 'WARN'),
    ('run_id_reused', 'R15', 'RUN_ID_REUSED', 'consumer', 'MUST', 'MUST'),
    ('interrupt_as_success', 'R20', 'INTERRUPT_AS_SUCCESS', 'producer', 'MUST', 'MUST'),
    ('empty_interrupt', 'R21', 'EMPTY_INTERRUPT', 'producer', 'MUST', 'MUST'),
    ('dup_interrupt_id', 'R22', 'DUP_INTERRUPT_ID', 'producer', 'MUST', 'MUST'),
    ('outcome_contradiction', 'R23', 'OUTCOME_CONTRADICTION', 'producer', 'MUST', 'MUST'),
    ('dangling_toolcall', 'R24', 'DANGLING_TOOLCALL', 'producer', 'WARN', 'WARN'),
    ('stop_as_success', 'R25', 'STOP_AS_SUCCESS', 'producer', 'MUST', 'NOTE'),
    ('cancelled_with_result', 'R26', 'CANCELLED_WITH_RESULT', 'producer', 'SHOULD', 'SHOULD'),
    ('fabricated_result', 'R30', 'FABRICATED_RESULT', 'producer', 'MUST', 'WARN'),
    ('frontend_as_interrupt', 'R31', 'FRONTEND_AS_INTERRUPT', 'producer', 'MUST', 'WARN'),
    ('pending_list_mismatch', 'R32', 'PENDING_LIST_MISMATCH', 'producer', 'MUST', 'MUST'),
    ('pending_list_absent', 'R32', 'PENDING_LIST_ABSENT', 'producer', 'SHOULD', 'NOTE'),
    ('unanswered_call', 'R34', 'UNANSWERED_CALL', 'consumer', 'WARN', 'WARN'),
    ('subagent_lifecycle', 'R40', 'SUBAGENT_LIFECYCLE', 'producer', 'MUST', 'MUST'),
    ('suspended_unknown_interrupt', 'R44', 'SUSPENDED_UNKNOWN_INTERRUPT', 'producer', 'WARN', 'WARN'),
    ('attribution_mismatch', 'R46', 'ATTRIBUTION_MISMATCH', 'producer', 'MUST', 'MUST'),
    ('resume_wrong_thread', 'R50', 'RESUME_WRONG_THREAD', 'consumer', 'MUST', 'MUST'),
    ('resume_unknown_id', 'R51', 'RESUME_UNKNOWN_ID', 'consumer', 'MUST', 'MUST'),
    ('resume_stale_id', 'R51', 'RESUME_STALE_ID', 'consumer', 'MUST', 'MUST'),
    ('uncovered', 'R52', 'UNCOVERED', 'consumer', 'MUST', 'MUST'),
    ('silent_continue', 'R53', 'SILENT_CONTINUE', 'consumer', 'MUST', 'MUST'),
    ('expired_answer', 'R54', 'EXPIRED_ANSWER', 'consumer', 'MUST', 'MUST'),
    ('entry_malformed', 'R55', 'ENTRY_MALFORMED', 'consumer', 'MUST', 'MUST'),
    ('resume_duplicate', 'R56', 'RESUME_DUPLICATE', 'consumer', 'MUST', 'MUST'),
    ('resume_nothing_open', 'R58', 'RESUME_NOTHING_OPEN', 'consumer', 'MUST', 'MUST'),
    ('payload_schema_mismatch', 'R59', 'PAYLOAD_SCHEMA_MISMATCH', 'consumer', 'SHOULD', 'SHOULD'),
    ('schema_unreadable', 'R59', 'SCHEMA_UNREADABLE', 'producer', 'WARN', 'WARN'),
    ('payload_too_large', 'R59', 'PAYLOAD_TOO_LARGE', 'consumer', 'SHOULD', 'SHOULD'),
    ('history_lost', 'R60', 'HISTORY_LOST', 'consumer', 'WARN', 'WARN'),
    ('reserved_key', 'R61', 'RESERVED_KEY', 'consumer', 'MUST', 'MUST'),
    ('edits_not_offered', 'R62', 'EDITS_NOT_OFFERED', 'consumer', 'MUST', 'MUST'),
    ('answer_changed', 'R63', 'ANSWER_CHANGED', 'consumer', 'MUST', 'MUST'),
    ('answer_fate_unknown', 'R64', 'ANSWER_FATE_UNKNOWN', 'auditor', 'WARN', 'WARN'),
    ('guard_state_unreadable', 'R65', 'GUARD_STATE_UNREADABLE', 'consumer', 'MUST', 'MUST'),
    ('input_unreadable', 'R65', 'INPUT_UNREADABLE', 'consumer', 'MUST', 'MUST'),
    ('two_channels', 'R66', 'TWO_CHANNELS', 'consumer', 'WARN', 'WARN'),
    ('unrecognised_entry_failed_run', 'R70', 'UNRECOGNISED_ENTRY_FAILED_RUN', 'producer', 'SHOULD', 'NOTE'),
    ('action_without_answer', 'R71', 'ACTION_WITHOUT_ANSWER', 'producer', 'MUST', 'MUST'),
    ('success_over_open_interrupt', 'R73', 'SUCCESS_OVER_OPEN_INTERRUPT', 'producer', 'MUST', 'MUST'),
    ('uncovered_mishandled', 'R74', 'UNCOVERED_MISHANDLED', 'producer', 'MUST', 'MUST'),
    ('result_after_cancel', 'R75', 'RESULT_AFTER_CANCEL', 'producer', 'WARN', 'WARN'),
    ('action_on_unrecognised_answer', 'R76', 'ACTION_ON_UNRECOGNISED_ANSWER', 'producer', 'MUST', 'MUST'),
    ('duplicate_effect', 'R77', 'DUPLICATE_EFFECT', 'producer', 'MUST', 'MUST'),
    ('no_boundary_snapshot', 'R78', 'NO_BOUNDARY_SNAPSHOT', 'producer', 'NOTE', 'MUST'),
    ('reopen_mismatch', 'R79', 'REOPEN_MISMATCH', 'producer', 'MUST', 'MUST'),
    ('approved_not_executed', 'R80', 'APPROVED_NOT_EXECUTED', 'auditor', 'WARN', 'WARN'),
    ('answer_consumed_then_failed', 'R81', 'ANSWER_CONSUMED_THEN_FAILED', 'auditor', 'WARN', 'WARN'),
    ('reinterrupt_loop', 'R82', 'REINTERRUPT_LOOP', 'auditor', 'WARN', 'WARN'),
    ('interrupt_id_drift', 'R83', 'INTERRUPT_ID_DRIFT', 'producer', 'WARN', 'WARN'),
    ('legacy_count_mismatch', 'R84', 'LEGACY_COUNT_MISMATCH', 'producer', 'WARN', 'WARN'),
    ('bad_answer', 'R85', 'BAD_ANSWER', 'producer', 'NOTE', 'MUST'),
    ('bad_answer_swallowed', 'R85', 'BAD_ANSWER_SWALLOWED', 'producer', 'NOTE', 'MUST'),
    ('late_answer', 'R86', 'LATE_ANSWER', 'producer', 'NOTE', 'MUST'),
    ('late_answer_taken', 'R86', 'LATE_ANSWER_TAKEN', 'producer', 'NOTE', 'MUST'),
    ('expired_cancel_rejected', 'R87', 'EXPIRED_CANCEL_REJECTED', 'producer', 'MUST', 'MUST'),
    ('valid_resume_refused', 'R88', 'VALID_RESUME_REFUSED', 'producer', 'MUST', 'MUST'),
    ('unrouted', 'R90', 'UNROUTED', 'auditor', 'WARN', 'WARN'),
    ('overdue', 'R92', 'OVERDUE', 'auditor', 'WARN', 'WARN'),
    ('capability_mismatch', 'R94', 'CAPABILITY_MISMATCH', 'producer', 'WARN', 'WARN'),
    ('receipt_disagrees', 'R95', 'RECEIPT_DISAGREES', 'producer', 'WARN', 'WARN'),
    ('lost_interrupt', 'R96', 'LOST_INTERRUPT', 'producer', 'WARN', 'WARN')
    -- [[[end]]]
),
seen AS (
    SELECT
        coalesce(framework, 'ag-ui') AS integration,
        framework_version AS version,
        CASE WHEN list_contains([split_part(each, '=', 1) FOR each IN findings], 'no_version') THEN 'before' ELSE '1.0' END
            AS contract,
        findings,
        sign,
        last_at,
        run_id
    FROM verdicts
    WHERE is_latest AND hour >= $hour AND opened_at >= $since
        AND ($agent IS NULL OR agent = $agent)
        AND ($environment IS NULL OR environment = $environment)
        AND adapter = 'stopcause.agui'
),
counted AS (
    SELECT integration, version, sum(sign) AS runs
    FROM seen
    GROUP BY integration, version
    HAVING sum(sign) > 0
),
named AS (  -- each row has a code once, wherever it was found in the run
    SELECT
        integration,
        version,
        contract,
        sign,
        last_at,
        run_id,
        unnest(list_distinct([split_part(each, '=', 1) FOR each IN findings])) AS code
    FROM seen
),
by_run AS (
    SELECT
        integration,
        version,
        contract,
        rule,
        finding,
        whose,
        CASE contract WHEN 'before' THEN level_before ELSE level END AS weight,
        run_id,
        max(last_at) AS last_at
    FROM named
    JOIN rules USING (code)
    GROUP BY integration, version, contract, rule, finding, whose, weight, run_id
    HAVING sum(sign) > 0 AND weight <> 'NOTE'
),
found AS (
    SELECT
        integration,
        version,
        rule,
        finding,
        whose,
        weight,
        contract,
        count(*) AS runs,
        max(last_at) AS last_at,
        arg_max(run_id, {'last_at': last_at, 'run_id': run_id}) AS run_id
    FROM by_run
    GROUP BY integration, version, rule, finding, whose, weight, contract
)
SELECT
    found.integration,
    found.version,
    rule,
    finding,
    whose,
    weight AS level,
    contract,
    found.runs,
    found.runs / counted.runs AS share,
    found.last_at,
    found.run_id
FROM found
JOIN counted ON counted.integration = found.integration AND counted.version IS NOT DISTINCT FROM found.version
ORDER BY
    list_position(['producer', 'consumer', 'auditor'], whose),
    list_position(['MUST', 'SHOULD', 'WARN'], weight),
    found.runs DESC,
    found.integration,
    found.version,
    finding,
    contract
LIMIT $limit
