"""The aims of the figures, and which of them are reached. Pure."""

from collections.abc import Callable, Mapping
from typing import Any


def _part_of_bound(report: Mapping[str, Any]) -> float:
    """Jobs that came to run per second, of what the scheduler bound per second with the extender."""
    return float(report["scale"][-1]["pods_per_s"] / report["binding"]["with_extender_per_s"])


_AIMS: tuple[tuple[str, str, float, Callable[[Any], float]], ...] = (
    ("filter_p99_ms_at_1000_names", "<", 2.0, lambda r: r["filter_quiet"]["p99_ms"]),
    ("filter_p99_ms_while_planning", "<", 2.0, lambda r: r["filter_while_planning"]["p99_ms"]),
    ("pods_bound_per_s", ">=", 150.0, lambda r: r["binding"]["with_extender_per_s"]),
    ("ratio_to_no_extender", ">=", 0.85, lambda r: r["binding"]["ratio"]),
    ("one_more_job_p50_s", "<=", 1.0, lambda r: r["scale"][-1]["start_s"]),
    ("one_more_job_p99_s", "<=", 3.0, lambda r: r["scale"][-1]["start_p99_s"]),
    ("one_more_job_while_planning_p50_s", "<=", 1.0, lambda r: r["round"]["start_p50_s"]),
    ("one_more_job_while_planning_p99_s", "<=", 3.0, lambda r: r["round"]["start_p99_s"]),
    ("rounds_written_late", "<=", 0.0, lambda r: 0.0 if r["round"]["in_time"] else 1.0),
    ("pods_to_running_part_of_bound_per_s", ">=", 0.8, _part_of_bound),
    (
        "filter_p99_of_a_bare_extender_quiet",
        "<=",
        1.3,
        lambda r: r["filter_quiet"]["p99_ms"] / r["filter_bare"]["p99_ms"],
    ),
    (
        "filter_p99_of_a_bare_extender_while_planning",
        "<=",
        1.3,
        lambda r: r["filter_while_planning"]["p99_ms"] / r["filter_bare_while_planning"]["p99_ms"],
    ),
    ("reconciled_once_s", "<=", 5.0, lambda r: r["reconcile"]["reconciled_s"]),
    (
        "reconciled_once_of_a_bare_handler",
        "<=",
        1.5,
        lambda r: r["reconcile"]["reconciled_s"] / r["reconcile_bare"]["reconciled_s"],
    ),
    ("operator_mb", "<", 150.0, lambda r: r["scale"][-1]["memory_mb"]["operator"]),
    ("extender_mb", "<", 250.0, lambda r: r["scale"][-1]["memory_mb"]["extender"]),
    ("hand_over_s", "<", 8.0, lambda r: max(item["seconds"] for item in r["hand_over"])),
    ("bindings_lost_or_doubled", "<=", 0.0, lambda r: sum(item["lost"] + item["doubled"] for item in r["hand_over"])),
)
_HOLDS = {"<": float.__lt__, "<=": float.__le__, ">=": float.__ge__}


def aims(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each aim beside its figure. They are meant for 1,000 jobs on two cores."""
    found = []
    for name, relation, aim, figure in _AIMS:
        value = float(figure(report))
        found.append(
            {"name": name, "value": value, "relation": relation, "aim": aim, "met": _HOLDS[relation](value, aim)}
        )
    return found
