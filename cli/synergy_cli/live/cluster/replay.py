"""The command line that simulates what a cluster did."""

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from synergy_cli.options.queues import thresholds_text
from synergy_core.model.config import OPTIONS, PlanConfig

_LEFT_OUT: Final = frozenset({"predictors", "queues.service_gpu_s"})
"""Options that name files, which an export does not have."""


def replay_words(folder: Path, config: PlanConfig, round_s: float, *, start_s: float, restart_s: float) -> list[str]:
    """The words of `kube-synergy simulate` on the exported files, as the cluster planned; seconds that a job took to
    begin, the first time and later."""
    words = ["kube-synergy", "simulate"]
    for option, name in (("--trace", "trace.csv"), ("--profiles", "profiles.json"), ("--cluster", "cluster.yaml")):
        words += [option, str(folder / name)]
    words += ["--round", f"{round_s:g}", *_policy_words(config)]
    for option, seconds in (("--start-overhead", start_s), ("--preemption-overhead", restart_s)):
        words += [option, f"{seconds:.3g}"] if seconds > 0 else []
    return words


def _policy_words(config: PlanConfig) -> Iterator[str]:
    """The options that differ from the command's defaults."""
    for one in OPTIONS:
        flag, value = one.option.flag, attrgetter(one.path)(config)
        if flag is None or "simulate" not in flag.commands or one.path in _LEFT_OUT:
            continue
        if one.path not in ("policy", "mechanism") and value in (one.default, None):
            continue
        yield flag.name
        if one.type is not bool:
            yield _text(one.path, value)


def _text(path: str, value: Any) -> str:
    if path == "queues.thresholds_gpu_s":
        return thresholds_text(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
