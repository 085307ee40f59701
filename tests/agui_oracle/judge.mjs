// The reference client as a judge: streams in, one a line; what it says of each out, one a line.
//
//   in   {"threadId", "runId", "events"}
//   out  {"ok": true, "ends": [["success" | "interrupt" | "cancelled" | "error", [ids]]]}
//        {"ok": false, "error", "field"}   it rejects the stream; the field, where it is one
//
// `ends` are the last words on each run, as a subscriber is told them: with the interrupts that it asks for, or the calls
// that a success leaves unanswered.
import { createInterface } from "node:readline";
import { AbstractAgent } from "@ag-ui/client";
import { from } from "rxjs";

const LONGEST = 200; // of an error, in characters
for (const name of ["error", "warn", "debug", "info", "log"]) console[name] = () => {};

class Recorded extends AbstractAgent {
  constructor(threadId, events) {
    super({ threadId });
    this.recorded = events;
  }

  run() {
    return from(this.recorded);
  }
}

// Of a path in an event, the names: which entry of a list it was does not matter.
const fieldOf = (path) => path?.filter((each) => typeof each === "string").join(".");

const judged = async ({ threadId, runId, events }) => {
  const ends = [];
  let run = 0;
  const subscriber = {
    onRunStartedEvent: () => {
      run = ends.length;
    },
    onRunFinishedEvent: (said) => {
      ends[run] = [said.outcome, said.interrupts?.map((each) => each.id) ?? said.pendingToolCallIds ?? []];
    },
    onRunErrorEvent: () => {
      ends[run] = ["error", []];
    },
  };
  try {
    await new Recorded(threadId, events).runAgent({ runId }, subscriber);
    return { ok: true, ends };
  } catch (error) {
    const field = fieldOf(error?.issues?.[0]?.path);
    return { ok: false, error: String(error?.message ?? error).slice(0, LONGEST), field };
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await judged(JSON.parse(line)))}\n`);
}
