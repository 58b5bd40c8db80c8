"""Small models alone, in twos and in threes on one GPU: by turns, under MPS, and with unequal limits on threads."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from synergy_cli.gpu.measuring import Command, Measured, Setting, TrainingError, side_by_side
from synergy_cli.gpu.mps import MpsError, mps_daemon
from synergy_cli.gpu.tables import of_alone, predicted
from synergy_core.colocation.delta import delta

Report = Callable[[str], None]
Group = tuple[Setting, ...]
LIMITS = ((25, 75), (75, 25), (50, 50))
"""Percent of the GPU's threads that the two jobs of a pair get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is measured, and for how long."""

    settings: tuple[Setting, ...]
    most_pairs: int = 24
    most_threes: int = 0
    most_limited: int = 0
    """Pairs that are measured with each of LIMITS, too."""
    settle_s: float = 1.0
    seconds: float = 4.0


def training_command(setting: Setting, python: str = sys.executable, device: str = "cuda") -> list[str]:
    """The training with PyTorch."""
    return [python, "-m", "synergy_cli.gpu.training", setting.model, str(setting.batch), device]


def pairs_of(settings: Sequence[Setting], most: int) -> list[Group]:
    """At most so many pairs, evenly from all that there are: every setting comes about as often."""
    every = sorted(combinations_with_replacement(sorted(settings), 2), key=lambda pair: _spread(pair, settings))
    return sorted(every[:most])


def threes_of(settings: Sequence[Setting], most: int) -> list[Group]:
    """At most so many groups of three models at one batch size, evenly from all: as in the thesis' figure 4.5."""
    by_batch: dict[int, list[Setting]] = {}
    for one in sorted(settings):
        by_batch.setdefault(one.batch, []).append(one)
    every = [three for same in by_batch.values() for three in combinations_with_replacement(same, 3)]
    if most >= len(every):
        return sorted(every)
    return sorted({every[index * len(every) // most] for index in range(most)})


def _spread(pair: Group, settings: Sequence[Setting]) -> tuple[int, int]:
    """Pairs of neighbours on a ring of the settings first, then of those at a distance of two, and so on."""
    ring = sorted(settings)
    first, second = (ring.index(one) for one in pair)
    away = min((second - first) % len(ring), (first - second) % len(ring))
    return (away - 1) % len(ring), first  # of a setting with itself last


def measured_groups(
    gpu: str, options: Options, environ: Mapping[str, str], report: Report, command: Command = training_command
) -> dict[str, Any]:
    """The measurements as JSON. Trainings that fail are left out, with why; so is MPS where it cannot be started.

    Raises TrainingError where nothing at all could be measured alone.
    """
    bench = _Bench(options, command, report)
    environ = {**environ, **only(gpu)}
    alone = bench.alone(environ)
    if not alone:
        raise TrainingError(bench.failures[0] if bench.failures else "there is nothing to measure")
    pairs, threes = (
        [group for group in groups if all(one in alone for one in group)]
        for groups in (
            pairs_of(options.settings, options.most_pairs),
            threes_of(options.settings, options.most_threes),
        )
    )
    modes = {"turns": _mode(bench.together([*pairs, *threes], alone, environ, "by turns"), alone)}
    with ExitStack() as stack:
        try:
            clients = stack.enter_context(mps_daemon(gpu, environ))
        except MpsError as error:
            report(f"MPS: {error}")
            modes["mps"] = modes["mps_limited"] = {"skipped": str(error)}
        else:
            modes["mps"] = _mode(bench.together([*pairs, *threes], alone, clients, "under MPS"), alone)
            limited = pairs[: options.most_limited]
            modes["mps_limited"] = {"groups": list(bench.limited(limited, alone, clients))}
    singles = [of_alone(setting, one) for setting, one in sorted(alone.items())]
    return {"alone": singles, **modes, "failures": bench.failures}


def only(gpu: str) -> dict[str, str]:
    """What keeps processes, and who samples what they do, to the GPU of that UUID."""
    return {"CUDA_VISIBLE_DEVICES": gpu, "NVIDIA_VISIBLE_DEVICES": gpu}


class _Bench:
    """Measures, and keeps what could not be."""

    def __init__(self, options: Options, command: Command, report: Report) -> None:
        self._options = options
        self._command = command
        self._report = report
        self.failures: list[str] = []

    def alone(self, environ: Mapping[str, str]) -> dict[Setting, Measured]:
        """Each setting by itself, with the GPU's counters where there are some."""
        found = {}
        for setting in self._options.settings:
            one = self._measured((setting,), environ, "alone")
            if one is not None:
                found[setting] = one
                self._report(f"{setting} alone: {one.steps_per_s[0]:.4g} steps/s")
        return found

    def together(
        self, groups: Iterable[Group], alone: Mapping[Setting, Measured], environ: Mapping[str, str], mode: str
    ) -> list[dict[str, Any]]:
        """Each group, in the `environ` of that mode."""
        return [one for group in groups for one in self._group(group, alone, environ, mode)]

    def limited(
        self, pairs: Iterable[Group], alone: Mapping[Setting, Measured], environ: Mapping[str, str]
    ) -> Iterator[dict[str, Any]]:
        """Each pair, with each of LIMITS."""
        for pair in pairs:
            for limits in LIMITS:
                mode = f"with {' and '.join(map(str, limits))} percent of the threads"
                for one in self._group(pair, alone, environ, mode, limits):
                    yield {**one, "thread_percent": list(limits)}

    def _group(
        self,
        group: Group,
        alone: Mapping[Setting, Measured],
        environ: Mapping[str, str],
        mode: str,
        limits: Sequence[int] = (),
    ) -> Iterator[dict[str, Any]]:
        """The figures; nothing of a group that could not be measured."""
        both = self._measured(group, environ, mode, limits)
        if both is None:
            return
        own = [alone[one].steps_per_s[0] for one in group]
        fractions = [speed / best for speed, best in zip(both.steps_per_s, own, strict=True)]
        gain = delta([1 / best for best in own], [1 / speed for speed in both.steps_per_s])
        kept = " and ".join(f"{one:.2f}" for one in fractions)
        self._report(f"{' + '.join(map(str, group))}, {mode}: keep {kept}, delta {gain:.2f}")
        yield {
            "models": [one.model for one in group],
            "batches": [one.batch for one in group],
            "seconds_per_step": [1 / speed for speed in both.steps_per_s],
            "fractions": fractions,
            "delta": gain,
        }

    def _measured(
        self, settings: Sequence[Setting], environ: Mapping[str, str], mode: str, limits: Sequence[int] = ()
    ) -> Measured | None:
        options = self._options
        try:
            return side_by_side(
                settings, self._command, environ, settle_s=options.settle_s, seconds=options.seconds, limits=limits
            )
        except TrainingError as error:
            self.failures.append(f"{mode}: {error}")
            self._report(self.failures[-1])
            return None


def _mode(found: Sequence[dict[str, Any]], alone: Mapping[Setting, Measured]) -> dict[str, Any]:
    return {"groups": list(found), "by_batch": _by_batch(found), "predicted": predicted(found, alone)}


def _by_batch(found: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean delta by the number of jobs and their largest batch: the thesis' figures 4.3 to 4.6."""
    by: dict[tuple[int, int], list[float]] = {}
    for one in found:
        by.setdefault((len(one["models"]), max(one["batches"])), []).append(one["delta"])
    means: dict[str, dict[str, float]] = {}
    for (jobs, batch), deltas in sorted(by.items()):
        means.setdefault(str(jobs), {})[str(batch)] = sum(deltas) / len(deltas)
    return means
