"""Small models alone and in pairs on one GPU, under MPS and by turns: what they keep, and how well it can be
predicted."""

import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from synergy_cli.gpu.machine import MIB
from synergy_cli.gpu.measuring import Command, Measured, Setting, TrainingError, side_by_side
from synergy_cli.gpu.mps import MpsError, mps_daemon
from synergy_core.colocation.delta import delta
from synergy_core.colocation.predictors.effects import fit_effects
from synergy_core.colocation.predictors.evaluation import Fit, judged, score
from synergy_core.colocation.predictors.sums import fit_sums
from synergy_core.model.measurement import SharedMeasurement
from synergy_core.model.usage import Usage

Report = Callable[[str], None]
_DATA = "synthetic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is measured, and for how long."""

    settings: tuple[Setting, ...]
    most_pairs: int = 24
    settle_s: float = 1.0
    seconds: float = 4.0


def training_command(setting: Setting) -> list[str]:
    """The training with PyTorch."""
    return [sys.executable, "-m", "synergy_cli.gpu.training", setting.model, str(setting.batch)]


def pairs_of(settings: Sequence[Setting], most: int) -> list[tuple[Setting, Setting]]:
    """At most so many pairs, evenly from all that there are: every setting comes about as often."""
    every = sorted(combinations_with_replacement(sorted(settings), 2), key=lambda pair: _spread(pair, settings))
    return sorted(every[:most])


def _spread(pair: tuple[Setting, Setting], settings: Sequence[Setting]) -> tuple[int, int]:
    """Pairs of neighbours on a ring of the settings first, then of those at a distance of two, and so on."""
    ring = sorted(settings)
    first, second = (ring.index(one) for one in pair)
    away = min((second - first) % len(ring), (first - second) % len(ring))
    return (away - 1) % len(ring), first  # of a setting with itself last


def measured_pairs(
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
    pairs = [pair for pair in pairs_of(options.settings, options.most_pairs) if all(one in alone for one in pair)]
    modes: dict[str, Any] = {}
    for mode in ("turns", "mps"):
        try:
            with nullcontext(dict(environ)) if mode == "turns" else mps_daemon(gpu, environ) as clients:
                found = bench.together(pairs, alone, clients, mode)
        except MpsError as error:
            report(f"MPS: {error}")
            modes[mode] = {"skipped": str(error)}
            continue
        modes[mode] = {"pairs": found, "by_batch": _by_batch(found), "predicted": _predicted(found, alone)}
    of_alone = [_of_alone(setting, one) for setting, one in sorted(alone.items())]
    return {"alone": of_alone, **modes, "failures": bench.failures}


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
        """Each setting by itself."""
        found = {}
        for setting in self._options.settings:
            one = self._measured((setting,), environ, "alone")
            if one is not None:
                found[setting] = one
                self._report(f"{setting} alone: {one.steps_per_s[0]:.4g} steps/s")
        return found

    def together(
        self,
        pairs: Sequence[tuple[Setting, Setting]],
        alone: Mapping[Setting, Measured],
        environ: Mapping[str, str],
        mode: str,
    ) -> list[dict[str, Any]]:
        """Each pair, in the `environ` of that mode."""
        found = []
        for pair in pairs:
            both = self._measured(pair, environ, mode)
            if both is None:
                continue
            own = [alone[one].steps_per_s[0] for one in pair]
            fractions = [speed / best for speed, best in zip(both.steps_per_s, own, strict=True)]
            gain = delta([1 / best for best in own], [1 / speed for speed in both.steps_per_s])
            kept = " and ".join(f"{one:.2f}" for one in fractions)
            self._report(f"{pair[0]} + {pair[1]}, {mode}: keep {kept}, delta {gain:.2f}")
            found.append(
                {
                    "models": [one.model for one in pair],
                    "batches": [one.batch for one in pair],
                    "seconds_per_step": [1 / speed for speed in both.steps_per_s],
                    "fractions": fractions,
                    "delta": gain,
                }
            )
        return found

    def _measured(self, settings: Sequence[Setting], environ: Mapping[str, str], mode: str) -> Measured | None:
        options = self._options
        try:
            return side_by_side(settings, self._command, environ, settle_s=options.settle_s, seconds=options.seconds)
        except TrainingError as error:
            self.failures.append(f"{mode}: {error}")
            self._report(self.failures[-1])
            return None


def tables(figures: Mapping[str, Any]) -> tuple[str, str]:
    """What was measured under MPS, else by turns, as the tables that `kube-synergy colocation fit` reads."""
    known = [one for one in figures["alone"] if one["usage"] is not None]
    single = [
        (*_key(one["model"], one["batch"]), one["batch"] / one["seconds_per_step"], *_percents(one)) for one in known
    ]
    names = {(one["model"], one["batch"]) for one in known}
    mode: Mapping[str, Any] = next(
        (figures[mode] for mode in ("mps", "turns") if "pairs" in figures[mode]), {"pairs": []}
    )
    pairs = []
    for one in mode["pairs"]:
        both = list(zip(one["models"], one["batches"], one["fractions"], strict=True))
        if all((model, batch) in names for model, batch, _ in both):
            pairs.append([cell for model, batch, kept in both for cell in (model, _DATA, 1, batch, 0, f"{kept:.4f}")])
    header = ["model", "dataset", "batchsize", "amp", "speed", "gpu_util", "gmem_util", "gmem"]
    sides = [
        f"{name}{side}" for side in (1, 2) for name in ["model", "dataset", "gpu_num", "batchsize", "amp", "speed"]
    ]
    return _csv(header, single), _csv([*sides, "gpu_util", "gmem_util", "gmem"], [[*row, "", "", ""] for row in pairs])


def _key(model: str, batch: int) -> tuple[str, str, int, int]:
    return model, _DATA, batch, 0


def _percents(one: Mapping[str, Any]) -> tuple[str, str, str]:
    usage = one["usage"]
    parts = [f"{100 * usage[name]:.2f}" for name in ("compute", "bandwidth")]
    return parts[0], parts[1], f"{usage['memory_bytes'] / MIB:.0f}"


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()


def _of_alone(setting: Setting, one: Measured) -> dict[str, Any]:
    told = one.usage
    usage = None if told is None else {
        "compute": told.compute, "bandwidth": told.bandwidth, "memory_bytes": told.memory_bytes
    }  # fmt: skip
    return {
        "model": setting.model,
        "batch": setting.batch,
        "seconds_per_step": 1 / one.steps_per_s[0],
        "usage": usage,
    }


def _by_batch(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean delta by the larger batch of a pair: what the thesis says of batches of 256."""
    by: dict[int, list[float]] = {}
    for one in found:
        by.setdefault(max(one["batches"]), []).append(one["delta"])
    return {str(batch): sum(deltas) / len(deltas) for batch, deltas in sorted(by.items())}


def _predicted(found: Sequence[Mapping[str, Any]], alone: Mapping[Setting, Measured]) -> dict[str, Any]:
    """How well the predictors predict pairs of a model that they were not fitted to."""
    measurements = []
    for one in found:
        settings = [Setting(*pair) for pair in zip(one["models"], one["batches"], strict=True)]
        usages = [_usage(setting, alone[setting]) for setting in settings]
        known = tuple(usage for usage in usages if usage is not None)
        if len(known) == len(usages):
            measurements.append(SharedMeasurement(known, tuple(one["fractions"])))
    fits: dict[str, Fit] = {"sums": fit_sums, "effects": fit_effects}
    scores: dict[str, Any] = {}
    for name, fit in fits.items():
        try:
            figures = score(judged(measurements, fit))
        except ValueError as error:
            scores[name] = {"skipped": f"too few pairs with a usage of both: {error}"}
        else:
            scores[name] = {"mae": figures.mae, "share_accuracy": figures.share_accuracy, "commoner": figures.commoner}
    return scores


def _usage(setting: Setting, one: Measured) -> Usage | None:
    if one.usage is None:
        return None
    return Usage(
        compute=min(1.0, one.usage.compute),
        bandwidth=min(1.0, one.usage.bandwidth),
        memory_bytes=one.usage.memory_bytes,
        model=setting.model,
        configuration=str(setting.batch),
    )
