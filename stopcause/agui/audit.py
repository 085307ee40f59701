"""What a run means for its thread, rule by rule: each a function, in the order of their cards.

A rule looks at a `Scene`: one run that is over, in the thread that it came into. It gives what it is about: ids of
interrupts or calls, or of the run; nothing where all is well. How much a finding weighs, and on whom, its card says.
Rules about the bytes and events of one stream are not here: `lifecycle` sees those as it reads.

    audit_answers   what the application sent       R15, R34, R50 to R54, R56 to R60, R62, R63, R65, R66
    audit_received  what the agent made of it       R30, R64, R70 to R77, R79 to R83, R85, R86, R96, R97
    audit_refused   what it would not take          R87, R88
    audit_runs      what a run says of itself       R14, R25, R45, R78, R94
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from stopcause.agui import audit_answers, audit_received, audit_refused, audit_runs
from stopcause.agui.cards import BY_NAME
from stopcause.agui.findings import Finding, found
from stopcause.agui.scene import Scene

Rule = Callable[[Scene], Iterable[str]]

RULES: Mapping[str, Rule] = {
    **audit_runs.RULES,
    **audit_answers.RULES,
    **audit_received.RULES,
    **audit_refused.RULES,
}
_IN_ORDER = tuple((name, RULES[name]) for name in BY_NAME if name in RULES)
_OF_ANY_RUN = frozenset({"RUN_ID_REUSED", *audit_runs.RULES})


def look_at(scene: Scene) -> Iterator[Finding]:
    """Everything that is found in a scene, in the order of the cards.

    A run whose id was counted moves its thread no more: what it answers or leaves out means nothing there.
    """
    is_counted = scene.run.run_id in scene.before.runs
    for name, rule in _IN_ORDER:
        about = () if is_counted and name not in _OF_ANY_RUN else tuple(dict.fromkeys(rule(scene)))
        if about:
            yield found(name, *about, mode=scene.run.mode)
