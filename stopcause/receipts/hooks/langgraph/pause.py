"""What one run of a graph waits for, and whose wait it takes up.

An interrupt is seen three times: where a tool raised it (which tells the tool), where an agent inside ended with it
(which tells the child), and where it left a node of the graph. Only the last one pauses the graph: on the way, a node
may have caught it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopcause.receipts.hooks.langgraph import waits
from stopcause.receipts.hooks.langgraph.call import BREAKPOINTS
from stopcause.receipts.vocabulary import ApprovalKind, Boundary

if TYPE_CHECKING:
    from stopcause.receipts.hooks.langgraph.call import Call
    from stopcause.receipts.run import Run


class Pause:
    """The waits of one run.

    Args:
        run: What is recorded.
        call: Of its graph.
        tools: The names of the tools that the graph has.
        outer: The waits of the graph that this one is inside of.

    Attributes:
        is_resuming: Whether the call resumes what waited, here or around it.
        resume: What it brings; never kept beyond the run, and only its decisions are read.
    """

    def __init__(self, run: Run, call: Call, tools: frozenset[str], outer: Pause | None) -> None:
        self._run = run
        self._call = call
        self._tools = tools
        self._outer = outer
        self.resume: object = None
        self.is_resuming = False
        self._taken: waits.Paused | None = None
        self._is_paused = False
        self._interrupts: dict[str, Any] = {}
        self._children: dict[str, tuple[str, list[waits.Asked]]] = {}  # by interrupt: the child's run, what it asked
        self._by_tool: dict[str, str] = {}  # by interrupt: the tool that asked
        self._allowed: list[tuple[str, str]] = []  # tools that an answer let run, with the approval

    # Taking up --------------------------------------------------------------------------------------------------------

    def take_up(self, memory: waits.Memory, given: object, *, is_command: bool) -> None:
        """Links the run to the one that waited at its place, if it resumes one. A new input gives that one up.

        What counts as a new input: `PregelLoop._first`; a command goes on from where the graph stands.
        """
        if self._outer is not None:
            self.is_resuming, self.resume = self._outer.is_resuming, self._outer.resume
        else:
            self.resume = getattr(given, "resume", None) if is_command else None
            self.is_resuming = given is None or is_command
        paused = memory.take(self._call.place)
        if paused is None:
            return
        if self.is_resuming:
            self._take_up(paused)
        elif (
            paused.run_id is not None
            and not paused.answers
            and paused.saver() is not None
            and paused.saver() is self._call.saver
        ):
            for each in paused.asked:
                self._run.withdrawn(paused.run_id, each.approval_id)

    def begun(self) -> None:
        """The first superstep. What a run of another process waits for is in the state that this one goes on from."""
        if self.is_resuming and self._outer is None and self._taken is None:
            asked = [each for one in self._call.pending for each in waits.asked_in(one, self._tools, None)]
            if asked:
                self._take_up(waits.Paused(None, tuple(asked)))

    def _take_up(self, paused: waits.Paused) -> None:
        answers = waits.answers_to(paused, self.resume, self._tools)
        self._taken = paused._replace(answers=answers)
        self._run.resumed(paused.run_id, {name: answer.decision for name, answer in answers.items()})
        said_yes = [(name, answer) for name, answer in answers.items() if answer.decision in waits.YES]
        self._allowed = [(answer.tool, name) for name, answer in said_yes if answer.tool is not None]

    def give_back(self, memory: waits.Memory) -> None:
        """A run that took a wait up has failed: the next one takes it up again, with the answers that the graph has."""
        paused, self._taken = self._taken, None
        if paused is not None:
            ran = dict.fromkeys(self._run.ran, waits.Answer())  # nothing more is to be done about these
            kept = {name: ran.get(name, answer) for name, answer in paused.answers.items()}
            memory.give_back(self._call.place, paused._replace(answers=kept))

    def let_run(self, tool: str | None) -> str | None:
        """The approval that let a tool run, once for each; None where it needed none."""
        allowed = next((each for each in self._allowed if each[0] == tool), None)
        if allowed is None:
            return None
        self._allowed.remove(allowed)
        return allowed[1]

    # Stopping ---------------------------------------------------------------------------------------------------------

    def went_on(self) -> None:
        """A superstep begins: nothing is waited for."""
        self._interrupts, self._is_paused = {}, False

    def interrupted(self, error: BaseException) -> None:
        """A node of the graph stopped to wait. Without interrupts: for a breakpoint of a graph inside it."""
        self._is_paused = True
        for interrupt in waits.interrupts_of(error):
            if isinstance(name := getattr(interrupt, "id", None), str):
                self._interrupts[name] = interrupt

    def asked_by_tool(self, tool: str, interrupts: Any) -> None:  # noqa: ANN401 - as above
        """A tool stopped to wait."""
        for interrupt in interrupts:
            self._by_tool.setdefault(getattr(interrupt, "id", ""), tool)

    def child_asked(self, interrupt: str, run_id: str, asked: list[waits.Asked]) -> None:
        """An agent inside it stopped to wait; its interrupt is about to stop this graph, too."""
        self._children[interrupt] = (run_id, asked)

    @property
    def is_on(self) -> bool:
        """Whether the graph stopped to wait."""
        return self._is_paused or self._call.status in BREAKPOINTS

    def say(self, memory: waits.Memory) -> None:
        """What the run waits for, if it stopped to wait; remembered for the run that takes it up."""
        if not self.is_on:
            return
        checkpoint = self._call.checkpoint
        token = waits.resume_token(self._call.thread, checkpoint) if self._call.outlives else None
        asked = {name: self._asked(name) for name in self._interrupts}
        if not asked:
            asked = {"": [waits.Asked(checkpoint or self._run.run_id, None, kind=ApprovalKind.CONFIRMATION)]}
        for name, several in asked.items():
            for each in several:
                self._say_one(each, name, token)
            if self._outer is not None:
                self._outer.child_asked(name, self._run.run_id, several)
        if self._call.keeps:
            everything = tuple(each for several in asked.values() for each in several)
            memory.keep(
                self._call.place, waits.Paused(self._run.run_id, everything, {}, waits.weakly(self._call.saver))
            )

    def _asked(self, name: str) -> list[waits.Asked]:
        """What an interrupt asks for; a child that raised it knew its own tools."""
        if name in self._children:
            return self._children[name][1]
        return waits.asked_in(self._interrupts[name], self._tools, self._by_tool.get(name))

    def _say_one(self, asked: waits.Asked, name: str, token: str | None) -> None:
        self._run.waiting(
            asked.approval_id,
            asked.kind,
            tool=asked.tool,
            tool_call_id=asked.tool_call_id,
            raised_by=self._children[name][0] if name in self._children else None,
            resume_token=token,
            resumable=True if self._call.outlives else None if self._call.keeps else False,
            boundary=Boundary.CALLBACK,
            metadata=getattr(self._interrupts.get(name), "value", None),
        )
