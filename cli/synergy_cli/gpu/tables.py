"""Measurements as tables: the ones that `kube-synergy colocation fit` reads, and how well predictors do on them."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from synergy_cli.gpu.machine import MIB
from synergy_cli.gpu.measuring import Measured, Setting
from synergy_core.colocation.predictors.effects import fit_effects
from synergy_core.colocation.predictors.evaluation import Fit, judged, score
from synergy_core.colocation.predictors.sums import fit_sums
from synergy_core.model.measurement import SharedMeasurement
from synergy_core.model.usage import Usage

_DATA = "synthetic"
_SINGLE = ("model", "dataset", "batchsize", "amp", "speed", "gpu_util", "gmem_util", "gmem")
_COUNTERS = ("sm_active", "dram_active")


def tables(figures: Mapping[str, Any]) -> tuple[str, str]:
    """Jobs alone, and the pairs measured under MPS, else by turns: CSV for `kube-synergy colocation fit`.

    With counters of all jobs, the first has their columns too.
    """
    known = [one for one in figures["alone"] if one["usage"] is not None]
    counters = bool(known) and all(one["usage"]["source"] != "Utilization" for one in known)
    single = [
        [*_key(one["model"], one["batch"]), one["batch"] / one["seconds_per_step"], *_percents(one, counters)]
        for one in known
    ]
    names = {(one["model"], one["batch"]) for one in known}
    mode: Mapping[str, Any] = next(
        (figures[mode] for mode in ("mps", "turns") if "groups" in figures[mode]), {"groups": []}
    )
    pairs = []
    for one in mode["groups"]:
        members = list(zip(one["models"], one["batches"], one["fractions"], strict=True))
        if len(members) == 2 and all((model, batch) in names for model, batch, _ in members):
            pairs.append(
                [cell for model, batch, kept in members for cell in (model, _DATA, 1, batch, 0, f"{kept:.4f}")]
            )
    sides = [
        f"{name}{side}" for side in (1, 2) for name in ["model", "dataset", "gpu_num", "batchsize", "amp", "speed"]
    ]
    header = [*_SINGLE, *(_COUNTERS if counters else ())]
    return _csv(header, single), _csv([*sides, *_SINGLE[5:]], [[*row, "", "", ""] for row in pairs])


def predicted(found: Sequence[Mapping[str, Any]], alone: Mapping[Setting, Measured]) -> dict[str, Any]:
    """How well the predictors predict pairs of a model that they were not fitted to."""
    measurements = []
    for one in found:
        settings = [Setting(*pair) for pair in zip(one["models"], one["batches"], strict=True)]
        usages = [_usage(setting, alone[setting]) for setting in settings]
        known = tuple(usage for usage in usages if usage is not None)
        if len(known) == len(usages) == 2:
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


def of_alone(setting: Setting, one: Measured) -> dict[str, Any]:
    """What one setting did by itself."""
    told = one.usage
    usage = None if told is None else {
        "source": told.source,
        "compute": told.compute,
        "bandwidth": told.bandwidth,
        "memory_bytes": told.memory_bytes,
        "occupancy": told.occupancy,
        "utilization": told.utilization,
        "memory_utilization": told.memory_utilization,
        "problem": told.problem,
    }  # fmt: skip
    return {
        "model": setting.model,
        "batch": setting.batch,
        "seconds_per_step": 1 / one.steps_per_s[0],
        "usage": usage,
    }


def _key(model: str, batch: int) -> tuple[str, str, int, int]:
    return model, _DATA, batch, 0


def _percents(one: Mapping[str, Any], counters: bool) -> list[str]:
    usage = one["usage"]
    own = [usage["compute"], usage["bandwidth"]]
    utilization = [usage["utilization"], usage["memory_utilization"]] if usage["source"] != "Utilization" else own
    told = [*utilization, *(own if counters else ())]
    cells = [f"{100 * value:.2f}" for value in told]
    return [*cells[:2], f"{usage['memory_bytes'] / MIB:.0f}", *cells[2:]]


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()


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
