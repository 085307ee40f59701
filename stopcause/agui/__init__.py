"""AG-UI 1.0: what a stream of events says about why a run stopped, and what its thread waits for.

    bytes   parsing, frames, reader: events of bytes.  inputs: what was asked
    runs    lifecycle: the state machine of a stream.  course: what a run did so far, with `items` (what is open),
            `chunks`, `shapes` (fields and types).  closing: its end, with `endings`, `interrupts`, `promises`, `modes`
    threads ledger: what becomes of interrupts, with `resumes` (which answer answers what), `gated` (which calls ran)
            and `turns` (the steps of a run's end).  told: records of both.  verdicts: the classifier's word on them
    rules   cards: every rule, with its number and its cases.  audit: what a run means for its thread, rule by rule,
            over a `scene`: `audit_answers`, `audit_received`, `audit_refused`, `audit_runs`
    answers guard: may this be sent, with `guard_rules`, `guard_state` and `guard_rows` (its file), `given`.  answers:
            builds a list that may be.  producer: what an agent may do with what it gets.  schemas: does a payload fit,
            with `schema_keywords`, `schema_budget`
    taps    tap_asgi, tap_httpx: where streams pass.  tap_passage: one as it does, with `tap_held`, `tap_faults`.
            tap: the threads there, and the records.  integration: which package speaks AG-UI here

`values`, `words`, `findings`, `ids` and `times` are everybody's. All of it reads other people's streams: it keeps no
content, and needs no SDK.
"""
