"""Figures of the product's own processes, from the report of `kube-synergy bench e2e --json`. Pure."""

from collections.abc import Mapping
from typing import Any

Report = Mapping[str, Any]


def bound_per_second(report: Report) -> float:
    """Pods bound per second with the extender, over those of the same scheduler without one."""
    return float(report["binding"]["ratio"])


def bound_per_second_bare(report: Report) -> float:
    """Pods bound per second with the extender, over those with a bare one."""
    return float(report["binding"]["ratio_to_bare"])


def reconciled_once(report: Report) -> float:
    """Seconds until all new jobs were reconciled once, over those of a bare kopf handler."""
    return float(report["reconcile"]["reconciled_s"] / report["reconcile_bare"]["reconciled_s"])


def filter_p99(report: Report) -> float:
    """The 99th percentile of filter calls at the client, over that of a bare extender."""
    return float(report["filter_quiet"]["p99_ms"] / report["filter_bare"]["p99_ms"])


def start(report: Report) -> float:
    """Seconds until one more job runs at the largest size, over those of a bare pod."""
    largest = report["scale"][-1]
    return float(largest["start_s"] / largest["pod_start_s"])


def operator_memory(report: Report) -> float:
    """The operator's memory once it has reconciled all new jobs, over that of a bare kopf handler."""
    return float(report["reconcile"]["operator_mb"] / report["reconcile_bare"]["operator_mb"])


def lost_or_doubled(report: Report) -> float:
    """Bindings lost and GPUs given twice while leaders ended."""
    return float(sum(item["lost"] + item["doubled"] for item in report["hand_over"]))
