"""Ends of an agent that nobody forced from outside: it finished, or was at its limit and had to answer."""

from __future__ import annotations

import threading
import time
from typing import Any

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.smolagents.models import Turn, agent, call, code, coder, done, look_up, say

UNPROVEN = ("FALSE_COMPLETE", "no_contract")
LIMITED = ("BOUNDED_STOP", "step_limit")
_LOOKS = (call(key="a"), call(key="b"))


def _side_by_side() -> None:
    """Two agents in two threads."""
    one, two = agent(done(pause=0.3), name="one"), agent(done(pause=0.4), name="two")
    threads = [threading.Thread(target=each.run, args=("Close it.",)) for each in (one, two)]
    for thread in threads:
        thread.start()
        time.sleep(0.15)
    for thread in threads:
        thread.join()


def _streamed(made: Any, **more: Any) -> None:
    for _ in made.run("Close it.", stream=True, **more):
        pass


def _both_on_one() -> None:
    """Two streams of one agent, read in turns: they share its count of steps."""
    made = agent(*(call(key="a") for _ in range(3)), done(), done())
    first = made.run("Close it.", stream=True)
    steps = (item for item in first if type(item).__name__ == "ActionStep")
    next(steps), next(steps)
    second = made.run("And the other one.", stream=True, reset=False)
    next(item for item in second if type(item).__name__ == "ActionStep")
    list(first), list(second)


def _in_a_block() -> None:
    with stopcause.run("ticket-agent", thread_id="thread-1"):
        agent(done()).run("Close it.")


def _continued() -> None:
    """The same conversation goes on: two runs."""
    made = agent(done(), call(key="a"), done())
    made.run("Close it.")
    made.run("And the other one.", reset=False)


def _checked(*turns: Turn, refuses: int, **more: Any) -> None:
    """A check of the program's refuses the first answers."""
    left = iter([False] * refuses)

    def looks_right(*_: Any, **__: Any) -> bool:
        return next(left, True)

    agent(*turns, final_answer_checks=[looks_right], **more).run("Close it.")


def _says(finish: str) -> None:
    agent(done(finish=finish)).run("Close it.")


PATHS = [
    Path_(
        "done",
        "The model called the tool that means done; nobody looked at the destination.",
        UNPROVEN,
        lambda: agent(done()).run("Close it."),
    ),
    Path_("tool", "A call of a tool, and done.", UNPROVEN, lambda: agent(call(key="a"), done()).run("Close it.")),
    Path_(
        "code",
        "The model wrote code that calls a tool, and then code that says done.",
        UNPROVEN,
        lambda: coder(code("x = look_up(key='a')"), code("final_answer(x)")).run("Close it."),
    ),
    Path_(
        "code-at-once",
        "One piece of code calls a tool and says done.",
        UNPROVEN,
        lambda: coder(code("final_answer(look_up(key='a'))")).run("Close it."),
    ),
    Path_(
        "code-structured",
        "The code is in a structured answer.",
        UNPROVEN,
        lambda: coder(say('{"thought": "", "code": "final_answer(7)"}'), use_structured_outputs_internally=True).run(
            "Close it."
        ),
    ),
    Path_("streamed", "A stream, read to its end.", UNPROVEN, lambda: _streamed(agent(call(key="a"), done()))),
    Path_(
        "outputs-streamed",
        "The model's answers come in pieces as well, and without their finish reason.",
        UNPROVEN,
        lambda: _streamed(coder(code("x = 1"), code("final_answer(x)"), stream_outputs=True)),
    ),
    Path_(
        "full-result",
        "The caller gets the full result: the framework's own word is success.",
        UNPROVEN,
        lambda: agent(done(), return_full_result=True).run("Close it."),
    ),
    Path_("side-by-side", "Two agents at once are two runs; the second is judged.", UNPROVEN, _side_by_side, judged=1),
    Path_("both-on-one", "Two streams of one agent at once: each has its own steps.", UNPROVEN, _both_on_one),
    Path_("in-a-block", "The host's own block and the agent in it are one run.", UNPROVEN, _in_a_block),
    Path_("continued", "The conversation goes on; the second run is judged.", UNPROVEN, _continued, judged=1),
    Path_(
        "no-name",
        "An agent without a name is called by its class.",
        UNPROVEN,
        lambda: agent(done(), name=None).run("Close it."),
    ),
    Path_(
        "no-usage",
        "The model does not say what it used.",
        UNPROVEN,
        lambda: agent(done(tokens=None)).run("Close it."),
    ),
    Path_(
        "planned",
        "Plans are calls of the model, and no steps.",
        UNPROVEN,
        lambda: agent(
            say("First."), call(key="a"), say("Then."), call(key="b"), say("Now."), done(), planning_interval=1
        ).run("Close it."),
    ),
    Path_(
        "finish-tool-calls",
        "The provider says that it asked for tools: the last of them.",
        UNPROVEN,
        lambda: _says("tool_calls"),
    ),
    Path_(
        "finish-length",
        "The last answer was cut off, and what was left of it still said done.",
        ("UNCERTAIN", "finish_mismatch"),
        lambda: _says("length"),
    ),
    Path_(
        "finish-filtered",
        "The provider's filter cut the last answer, and what was left of it still said done.",
        ("UNCERTAIN", "finish_mismatch"),
        lambda: _says("content_filter"),
    ),
    Path_(
        "finish-new",
        "A finish reason that nobody knows is no proof of an end.",
        ("UNCERTAIN", "finish_unknown"),
        lambda: _says("whatever_it_means"),
    ),
    Path_(
        "empty",
        "The final answer is empty.",
        ("FALSE_COMPLETE", "empty_output"),
        lambda: agent(done("")).run("Close it."),
    ),
    Path_(
        "nothing",
        "The code says done with nothing.",
        ("FALSE_COMPLETE", "empty_output"),
        lambda: coder(code("final_answer(None)")).run("Close it."),
    ),
    Path_(
        "data",
        "The final answer is data.",
        UNPROVEN,
        lambda: coder(code("final_answer({'ticket': 7})")).run("Close it."),
    ),
    Path_(
        "step-limit",
        "As many steps as allowed, then the model had to answer once more: an ordinary answer to the caller.",
        LIMITED,
        lambda: agent(*_LOOKS, say(), max_steps=2).run("Close it."),
    ),
    Path_(
        "step-limit-of-a-run",
        "As many steps as this one run was allowed, then the model had to answer once more.",
        LIMITED,
        lambda: agent(*_LOOKS, say()).run("Close it.", max_steps=2),
    ),
    Path_(
        "step-limit-code",
        "As many steps of code as allowed, then the model had to answer once more.",
        LIMITED,
        lambda: coder(code("x = 1"), code("x = 2"), say(), max_steps=2).run("Close it."),
    ),
    Path_(
        "step-limit-full-result",
        "At its limit the model had to answer once more, and the full result says so.",
        LIMITED,
        lambda: agent(*_LOOKS, say(), max_steps=2, return_full_result=True).run("Close it."),
    ),
    Path_(
        "step-limit-streamed",
        "A stream of as many steps as allowed; then the model had to answer once more.",
        LIMITED,
        lambda: _streamed(agent(*_LOOKS, say()), max_steps=2),
    ),
    Path_(
        "step-limit-reached",
        "Done on the last step allowed.",
        UNPROVEN,
        lambda: agent(*_LOOKS, done(), max_steps=3).run("Close it."),
    ),
    Path_(
        "step-limit-and-model-fails",
        "At the limit the model failed to answer, and the framework made an answer of that.",
        LIMITED,
        lambda: agent(*_LOOKS, Turn(error=ValueError("canary-7f3a")), max_steps=2).run("Close it."),
    ),
    Path_(
        "step-limit-and-only-calls",
        "At the limit the model asked for a tool once more, which is no text and no failure.",
        LIMITED,
        lambda: agent(*_LOOKS, call(key="c"), max_steps=2).run("Close it."),
    ),
    Path_(
        "only-prose",
        "The model never called a tool, not even the one that means done.",
        LIMITED,
        lambda: agent(say("It is closed."), say("It is closed."), say(), max_steps=2).run("Close it."),
    ),
    Path_(
        "answer-refused",
        "A check of the program's refused the first answer; the second was let through.",
        UNPROVEN,
        lambda: _checked(done(), done(), refuses=1),
    ),
    Path_(
        "answer-always-refused",
        "A check refused every answer up to the limit; the forced one is not checked.",
        LIMITED,
        lambda: _checked(done(), done(), say(), refuses=2, max_steps=2),
    ),
    Path_(
        "answer-beside-calls",
        "A call of a tool beside the final answer: refused, and asked again.",
        UNPROVEN,
        lambda: agent(
            Turn(calls=(("look_up", {"key": "a"}), ("final_answer", {"answer": "x"}))), done(), max_tool_threads=1
        ).run("Close it."),
    ),
    Path_(
        "parallel",
        "Two calls at once, in threads.",
        UNPROVEN,
        lambda: agent(Turn(calls=(("look_up", {"key": "a"}), ("pay", {"amount": 1}))), done()).run("Close it."),
    ),
    Path_(
        "own-final-answer",
        "The program's own tool is the one that means done: a call that counts.",
        UNPROVEN,
        lambda: agent(done(), tools=[look_up, _own()]).run("Close it."),
    ),
]


def _own() -> Any:
    from smolagents import tool  # noqa: PLC0415 - its name shadows ours

    @tool
    def final_answer(answer: str) -> str:
        """Closes the ticket, and says so.

        Args:
            answer: what to say.
        """
        return answer

    return final_answer
