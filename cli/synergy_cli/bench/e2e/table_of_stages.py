"""The reports of single stages as text. Pure."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, Final

from synergy_cli.bench.e2e.table import head
from synergy_cli.text_table import text_table

_PARTS: Final = ("operator", "kube-apiserver", "etcd")
_OF_STARTS: Final = (
    ("product", "the product"),
    ("writer", "a client that writes the same"),
    ("bare_pods", "bare pods of the default scheduler"),
)
_LEAST_MS: Final = 0.5
_LEAST_WRITES: Final = 0.05


def reconcile_text(report: Mapping[str, Any]) -> str:
    """The operator beside its references: medians of the turns."""
    found = report["reconcile"]
    rows = [
        (
            name,
            _median(one["reconciled_s"] for one in found[key]),
            *(_median(one["cpu_ms"][part] for one in found[key]) for part in _PARTS),
            _median(one["operator_mb"] for one in found[key]),
        )
        for key, name in (
            ("operator", "the operator"),
            ("bare_handler", "a bare kopf handler"),
            ("writer", "a client that writes the same"),
        )
    ]
    columns = ("by", "reconciled once s", *(f"{part} cpu ms/job" for part in _PARTS), "memory MB")
    ratios = (
        f"{report['sizes']['jobs']} jobs: the operator takes {found['ratio_to_bare_handler']:.2f} of the time of a "
        f"bare handler, {found['ratio_to_writer']:.2f} of that of a client that writes the same"
    )
    return "\n\n".join((head(report["machine"]), text_table(columns, rows), ratios))


def starts_text(report: Mapping[str, Any]) -> str:
    """Jobs to Running beside the references: medians of the turns, processor time by program, writes by kind."""
    found, jobs = report["starts"], report["sizes"]["jobs"]
    seconds = []
    for key, name in _OF_STARTS:
        taken = median(one["seconds"] for one in found[key])
        seconds.append((name, f"{taken:.1f}", f"{jobs / taken:.1f}"))
    ratios = (
        f"{jobs} jobs: the product takes {found['ratio_to_writer']:.2f} of the time of a client that writes the same, "
        f"{found['ratio_to_bare_pods']:.2f} of that of bare pods"
    )
    return "\n\n".join(
        (
            head(report["machine"]),
            text_table(("by", "all run s", "per second"), seconds),
            _each(found, "cpu_ms", "processor ms for each, of", _LEAST_MS),
            _each(found, "writes", "writes for each", _LEAST_WRITES),
            ratios,
        )
    )


def _each(found: Mapping[str, Any], field: str, title: str, least: float) -> str:
    """A table of the parts that come to something with any of them, the largest of the product first, and their sum."""
    of = {key: _medians(one[field] for one in found[key]) for key, _ in _OF_STARTS}
    parts = {part for one in of.values() for part, value in one.items() if value >= least}
    rows = [
        (part, *(f"{of[key].get(part, 0.0):.1f}" for key, _ in _OF_STARTS))
        for part in sorted(parts, key=lambda part: -of["product"].get(part, 0.0))
    ]
    total = ("all", *(f"{sum(of[key].values()):.1f}" for key, _ in _OF_STARTS))
    return text_table((title, "product", "writer", "bare pods"), [*rows, total])


def _medians(turns: Iterable[Mapping[str, float]]) -> dict[str, float]:
    read = list(turns)
    return {part: median(one.get(part, 0.0) for one in read) for part in sorted({part for one in read for part in one})}


def _median(figures: Iterable[float]) -> str:
    return f"{median(figures):.1f}"
