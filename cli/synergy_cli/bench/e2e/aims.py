"""The aims of the figures, and which of them are reached. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

_AIMS: tuple[tuple[str, str, float, Callable[[Any], float]], ...] = (
    ("filter_p99_ms_at_1000_names", "<", 2.0, lambda r: r["filter_quiet"]["p99_ms"]),
    ("filter_p99_ms_while_planning", "<", 2.0, lambda r: r["filter_while_planning"]["p99_ms"]),
    ("pods_bound_per_s", ">=", 150.0, lambda r: r["binding"]["with_extender_per_s"]),
    ("ratio_to_no_extender", ">=", 0.85, lambda r: r["binding"]["ratio"]),
    ("reconciled_once_s", "<=", 5.0, lambda r: r["reconcile"]["reconciled_s"]),
    ("operator_mb", "<", 150.0, lambda r: r["scale"][-1]["memory_mb"]["operator"]),
    ("extender_mb", "<", 250.0, lambda r: r["scale"][-1]["memory_mb"]["extender"]),
    ("hand_over_s", "<", 15.0, lambda r: max(item["seconds"] for item in r["hand_over"])),
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
