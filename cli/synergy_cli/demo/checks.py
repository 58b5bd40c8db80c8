"""What the demo should show, checked against what it saw. Pure."""

from collections.abc import Callable
from typing import Final, get_args

from synergy_api.resources.training_job import Phase
from synergy_cli.demo.observation import Observation
from synergy_cli.demo.story import BROKEN, IMPOSSIBLE, SENSITIVE, Story
from synergy_cli.demo.table import speed_gained

ENDS: Final = {BROKEN: "Failed", IMPOSSIBLE: "Pending"}
"""How jobs end that do not succeed."""
LEAST_GAIN: Final = 1.1


def shortcomings(story: Story) -> list[str]:
    """What the demo failed to show, a sentence each; empty if nothing."""
    return [text for check in _CHECKS for text in check(story)]


def _every_phase(story: Story) -> list[str]:
    seen = {phase for observation in story.observations.values() for phase in observation.phases}
    missing = [phase for phase in get_args(Phase) if phase not in seen]
    return [f"no job was seen in phase {', '.join(missing)}"] if missing else []


def _ends(story: Story) -> list[str]:
    texts = []
    for name, seen in story.observations.items():
        want = ENDS.get(name, "Succeeded")
        if not seen.phases or seen.phases[-1] != want:
            texts.append(f"{name} ended {seen.phases[-1:]} instead of {want}")
        elif want == "Succeeded" and _steps(seen) != seen.last["spec"]["steps"]:
            texts.append(f"{name} did {_steps(seen)} steps instead of {seen.last['spec']['steps']}")
    return texts


def _more_cpu(story: Story) -> list[str]:
    seen, share = story.observations[SENSITIVE], story.proportional_cpu_millis(SENSITIVE)
    if share is not None and seen.largest_cpu_millis > share:
        return []
    return [f"{SENSITIVE} was planned {seen.largest_cpu_millis}m CPU, not above its proportional share of {share}m"]


def _faster(story: Story) -> list[str]:
    gained = speed_gained(story.observations[SENSITIVE], story.proportional_cpu_millis(SENSITIVE))
    if gained is not None and gained >= LEAST_GAIN:
        return []
    measured = "not measured with both" if gained is None else f"{gained:.2f} times as fast"
    wanted = f"{SENSITIVE} should be {LEAST_GAIN} times as fast with its planned CPU as with its proportional share"
    advice = "profile runs measure too little on a busy machine, so run the demo on an idle one"
    return [f"{wanted}, and is {measured}; {advice}"]


def _resumed(story: Story) -> list[str]:
    yielded = [(seen, run, step) for seen in story.observations.values() for run, step in seen.yields.items()]
    if not yielded:
        return ["no job was preempted at a round's end and left a checkpoint"]
    return [
        f"{seen.name} left run {run} at step {step} and reported step {start} first in run {later}"
        for seen, run, step in yielded
        for later, start in seen.starts.items()
        if later > run and start < step
    ]


def _steps(seen: Observation) -> int:
    return int(((seen.last.get("status") or {}).get("progress") or {}).get("steps", 0))


_CHECKS: Final[tuple[Callable[[Story], list[str]], ...]] = (_every_phase, _ends, _more_cpu, _faster, _resumed)
