"""The measurements of one machine as a page of tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from synergy_core.model.usage import MIB

_MODES = (
    ("turns", "By turns, without MPS"),
    ("mps", "Under MPS"),
    ("mps_limited", "Under MPS, with limits on threads"),
)
_NO_GPU = "**These figures are of a CPU.** They show that the command works and tell nothing of a GPU."


def page(document: Mapping[str, Any]) -> str:
    """Markdown. What could not be measured has the reason in its table's place."""
    machine = document["machine"]
    parts = [f"# {machine['gpu']}", ""]
    if document["device"] == "cpu":
        parts += [_NO_GPU, ""]
    here = f"{machine['cpus']} CPUs ({machine['processor']}), {machine['system']}, Python {machine['python']}"
    parts += [
        f"Measured on {document['measured_at']}: driver {machine['driver'] or '-'}, {here}.",
        "",
        "## Alone",
        "",
        *_alone(document["alone"]),
    ]
    for mode, title in _MODES:
        parts += ["", f"## {title}", "", *_mode(document[mode])]
    parts += ["", "## CPUs of a real input pipeline", "", *_cpus(document["cpus"])]
    parts += ["", "## Checkpoints", "", *_checkpoints(document["checkpoints"])]
    parts += ["", "## Suspension by cuda-checkpoint", "", *_suspension(document["suspension"])]
    if document["failures"]:
        parts += ["", "## What failed", "", *(f"- {failure}" for failure in document["failures"])]
    return "\n".join(parts) + "\n"


def _alone(alone: Iterable[Mapping[str, Any]]) -> list[str]:
    """M is the used part of the memory's bandwidth, C the occupancy: the thesis' equations 4.2 and 4.3 over time, not
    over kernels."""
    header = ["model", "batch", "ms a step", "read from", "SM activity", "C", "M", "nvidia-smi", "memory MiB"]
    rows = []
    for one in alone:
        usage = one["usage"]
        row = [one["model"], one["batch"], _ms(one["seconds_per_step"])]
        if usage is None:
            rows.append([*row, *["-"] * 6])
            continue
        counters = usage["source"] != "Utilization"
        told = (
            [usage["compute"], usage["occupancy"], usage["bandwidth"], usage["utilization"]]
            if counters
            else [None, None, None, usage["compute"]]
        )
        rows.append([*row, usage["source"], *map(_percent, told), f"{usage['memory_bytes'] / MIB:.0f}"])
    return _table(header, rows)


def _mode(figures: Mapping[str, Any]) -> list[str]:
    if "skipped" in figures:
        return [f"Not measured: {figures['skipped']}"]
    groups = figures["groups"]
    if not groups:
        return ["Not measured: no group was asked for, or all failed."]
    limited = "thread_percent" in groups[0]
    header = ["jobs", *(["threads"] if limited else []), "ms a step", "keep", "delta"]
    rows = [
        [
            " + ".join(f"{model}-{batch}" for model, batch in zip(one["models"], one["batches"], strict=True)),
            *([" / ".join(map(str, one["thread_percent"]))] if limited else []),
            " / ".join(_ms(value) for value in one["seconds_per_step"]),
            " / ".join(f"{value:.2f}" for value in one["fractions"]),
            f"{one['delta']:.2f}",
        ]
        for one in groups
    ]
    return [*_table(header, rows), *_summary(figures)]


def _summary(figures: Mapping[str, Any]) -> list[str]:
    lines = []
    for jobs, by in figures.get("by_batch", {}).items():
        means = ", ".join(f"{batch}: {value:.2f}" for batch, value in by.items())
        lines += ["", f"Mean delta of {jobs} jobs by their largest batch: {means}."]
    for name, scores in figures.get("predicted", {}).items():
        told = scores["skipped"] if "skipped" in scores else _scored(scores)
        lines += ["", f"Predictor `{name}`, models left out in turn: {told}."]
    return lines


def _scored(scores: Mapping[str, float]) -> str:
    rightly = f"{scores['share_accuracy']:.0%} told rightly whether both keep 85 %"
    return (
        f"mean absolute error {scores['mae']:.3f}; {rightly}, the commoner answer is right for {scores['commoner']:.0%}"
    )


def _cpus(figures: Mapping[str, Any]) -> list[str]:
    if "skipped" in figures:
        return [f"Not measured: {figures['skipped']}"]
    rows = [
        [f"{millis / 1000:g}", f"{full:.2f}", f"{curve:.2f}"]
        for millis, full, curve in zip(
            figures["cpu_millis"], figures["full_steps_per_s"], figures["curve_steps_per_s"], strict=True
        )
    ]
    worst = f"The search's curve is off by {figures['worst_error']:.1%} at most."
    return [*_table(["CPUs", "steps/s measured", "steps/s by the search's curve"], rows), "", worst]


def _checkpoints(found: Iterable[Mapping[str, Any]]) -> list[str]:
    header = ["model", "MiB", "save s", "import s", "build s", "load s", "first step s"]
    rows: list[list[object]] = []
    for one in found:
        if "failed" in one:
            rows.append([one["model"], one["failed"], *["-"] * 5])
            continue
        load = [one["load"][f"{part}_seconds"] for part in ("import", "build", "load", "first_step")]
        rows.append(
            [
                one["model"],
                f"{one['save']['bytes'] / MIB:.1f}",
                f"{one['save']['seconds']:.3f}",
                *(f"{value:.3f}" for value in load),
            ]
        )
    return _table(header, rows)


def _suspension(figures: Mapping[str, Any]) -> list[str]:
    if "skipped" in figures:
        return [f"Not measured: {figures['skipped']}"]
    header = ["training", "suspend s", "resume s", "next steps s", "MiB running", "MiB suspended"]
    rows: list[list[object]] = []
    for one in figures["trainings"]:
        name = f"{one['model']}-{one['batch']}"
        if "failed" in one:
            rows.append([name, one["failed"], *["-"] * 4])
            continue
        times = [one[f"{part}_seconds"] for part in ("suspend", "resume", "next_steps")]
        memory = [one["gpu_memory_bytes"][state] for state in ("running", "suspended")]
        rows.append([name, *(f"{value:.3f}" for value in times), *(f"{value / MIB:.0f}" for value in memory)])
    return _table(header, rows)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f}"


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:.0%}"


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines]
