"""What the help of each command teaches with: commands that can be pasted, and what each is good for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "": (
        ("demo", "see all of it work"),
        ("connect ai-sdk", "add it to your own agent"),
        ("runs --attention", "what needs somebody"),
    ),
    "connect": (
        ("connect", "the frameworks that there are"),
        ("connect ai-sdk", "the lines to paste, and what to do next"),
        ("connect ai-sdk > hook.js", "the code alone"),
    ),
    "demo": (("demo", "its store is its own, made anew each time"),),
    "replay": (
        ("replay", "the 11 published cases"),
        ("replay cases/ --all", "your own cases, each of them shown"),
        ("replay --policy policy.toml", "what your policy would make of them"),
    ),
    "classify": (
        ("classify runs.jsonl", "a verdict on each run of a file"),
        ("classify runs.jsonl --policy policy.toml", "by your contracts"),
        ("classify - --fail-on FALSE_COMPLETE < runs.jsonl", "exit 1, for a script"),
    ),
    "agui": (
        ("agui audit stream.sse", "how its runs ended, and what their threads wait for"),
        ("agui check stream.sse --input INPUT.json", "whether that may be sent next"),
    ),
    "agui audit": (
        ("agui audit stream.sse", "a captured event stream, as a server sent it"),
        ("agui audit runs.jsonl --policy policy.toml", "inputs and events, with your routes"),
        ("agui audit stream.sse --mode spec-1.0", "what would be broken if it said that it speaks 1.0"),
        ("agui audit - < stream.sse", "standard input"),
    ),
    "agui check": (
        ("agui check runs.jsonl --input INPUT.json", "the answers that are to be sent, before they are"),
        ("agui check runs.jsonl --input INPUT.json --now 2026-11-30T08:00:00Z", "as of then: answers may be late"),
    ),
    "rules": (
        ("rules", "the eight cards"),
        ("rules -o jsonl", "the same for a program"),
        ("rules --agui", "the rules of AG-UI, by the moment at which they count"),
        ("rules --agui R71", "the whole of one"),
    ),
    "schema": (("schema > stopcause.schema.json", "for a validator or an editor"),),
    "ingest": (
        ("ingest runs.jsonl", "a file of records, one a line"),
        ("ingest traces/ cases/", "every file of folders"),
        ("ingest - < runs.jsonl", "standard input"),
        ("ingest --follow", "what hooks leave, until it is ended"),
    ),
    "runs": (
        ("runs --attention", "what needs somebody, in groups"),
        ("runs --verdict STUCK,FAILED --since 7d", "some verdicts, a week back"),
        ("runs --attention --fail-on STUCK", "exit 1 where there is one"),
    ),
    "waiting": (
        ("waiting", "who has to answer what, and until when"),
        ("waiting --fail-on WAITING_UNROUTED", "exit 1 where nobody is named"),
    ),
    "explain": (
        ("explain 9f3a1c", "a run by its id, or by the end of it"),
        ("explain e2b9", "the newest run of a group"),
        ("explain 9f3a1c --format md", "three lines for an incident channel"),
    ),
    "backup": (
        ("backup stopcause.tar", "all of the store in one file"),
        ("backup /backups/stopcause.tar", "nightly: takes the place of the last one"),
    ),
    "restore": (
        ("restore stopcause.tar", "into the store in use, which must be empty"),
        ("restore stopcause.tar --store try.duckdb", "elsewhere, to try the backup"),
    ),
    "forget": (
        ("forget --before 30d --dry-run", "what would go, and what stays"),
        ("forget --before 2026-10-31", "asks first"),
        ("forget --before 30d --yes", "for a nightly job"),
    ),
    "export": (
        ("export snapshot read.duckdb", "a file for dashboards and notebooks"),
        ("export parquet archive", "every record and verdict, by day"),
    ),
    "export snapshot": (("export snapshot read.duckdb", "takes the place of the last one"),),
    "export parquet": (
        ("export parquet archive", "the whole store"),
        ("export parquet archive --since 1d --before 0d", "yesterday (UTC)"),
        ("export parquet archive --resume-tokens", "for another store"),
    ),
    "export otlp": (
        ("export otlp --endpoint http://collector:4318", "events and the counter"),
        ("export otlp --since 5m", "what a timer runs every two minutes"),
        ("export otlp --dry-run -o jsonl", "what would leave, whole"),
    ),
    "outcome": (
        ("outcome confirm 9f3a1c --contract invoice --reason seen", "you looked, and it is there"),
        ("outcome refute 9f3a1c --contract invoice --reason gone", "you looked, and it is not"),
    ),
    "outcome confirm": (
        ("outcome confirm 9f3a1c --contract invoice --reason seen", "for all of its checks"),
        ("outcome confirm 9f3a1c --contract c1 --check record --reason seen", "for one"),
    ),
    "outcome refute": (
        ("outcome refute 9f3a1c --contract invoice --reason gone", "the work is open again"),
        ("outcome refute 9f3a1c --contract invoice --reason gone --ticket T-8", "and where it is worked on"),
    ),
    "report": (
        ("report", "the questions that there are"),
        ("report verdicts-by-day -p zone=Asia/Kolkata", "days of another time zone"),
        ("report costs --since 30d -o csv", "for a spreadsheet"),
    ),
    "policy": (
        ("policy init > policy.toml", "a starter from what the store has seen"),
        ("policy diff policy.toml", "what it would change, before it does"),
        ("policy apply policy.toml", "put it in force"),
    ),
    "policy init": (("policy init > policy.toml", "then fill in owners and contracts"),),
    "policy check": (
        ("policy check", "the policy in use: beside the store, or STOPCAUSE_POLICY"),
        ("policy check policy.toml", "a file, before it is used"),
        ("policy check policy.d", "a folder of files, as one"),
    ),
    "policy explain": (
        ("policy explain --agent invoice-agent --environment prod", "whose it is, and what done means"),
        ("policy explain --agent pay-agent --tool transfer_funds", "who answers that"),
    ),
    "policy diff": (
        ("policy diff policy.toml", "the last 30 days of the store"),
        ("policy diff policy.toml --fail-on FALSE_COMPLETE,UNCERTAIN", "exit 1, for a script"),
        ("policy diff new.toml cases/ --against old.toml --format md", "a comment for a pull request"),
    ),
    "policy apply": (
        ("policy apply policy.toml", "shows what changes, and asks"),
        ("policy apply policy.d --yes", "a folder, without asking"),
    ),
    "doctor": (
        ("doctor", "is the store well?"),
        ("doctor --wait --timeout 2m", "has the new agent reported?"),
        ("doctor -o jsonl", "for a probe; exit 1 where something is bad"),
    ),
    "sql": (
        ("sql .schema", "what there is to ask about"),
        ("sql 'SELECT agent, count(*) FROM runs GROUP BY 1'", "runs of each agent"),
        ("sql - -o csv < query.sql", "from a file, for a spreadsheet"),
    ),
    "triage": (
        ("triage ack e2b9 --reason known_cause", "out of sight until it gets worse"),
        ("triage resolve e2b9 --in-version 2.4.1", "until it comes back"),
    ),
    "triage ack": (
        ("triage ack e2b9 7c1e --reason known_cause", "out of sight for 7 days, or until they get worse"),
        ("triage ack --verdict STUCK --agent 'crawl-*' --reason upstream", "shows what it chose, and asks"),
        ("triage ack e2b9 --reopen", "takes it back"),
    ),
    "triage snooze": (
        ("triage snooze e2b9 --until 4h --reason deploy", "for four hours"),
        ("triage snooze e2b9 --count 100 --reason noise", "until 100 more runs end so"),
    ),
    "triage resolve": (
        ("triage resolve e2b9 --in-version 2.4.1", "mended in a version that runs have"),
        ("triage resolve e2b9 --in-version 2.5.0 --unreleased", "in one that is still to come"),
        ("triage resolve e2b9 --ticket OPS-12", "mended now, elsewhere"),
    ),
    "triage assign": (("triage assign e2b9 --owner team:data", "in place of the policy's owner"),),
}
