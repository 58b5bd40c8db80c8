"""The report as text. Pure."""

from collections.abc import Mapping
from typing import Any

from synergy_cli.text_table import text_table


def text(report: Mapping[str, Any]) -> str:
    """The aims beside the figures, then the figures by number of jobs."""
    binding = report["binding"]
    aims = text_table(
        ("figure", "value", "aim", "met"),
        [
            (aim["name"], f"{aim['value']:.2f}", f"{aim['relation']} {aim['aim']:g}", "yes" if aim["met"] else "no")
            for aim in report["aims"]
        ],
    )
    scales = text_table(
        (
            "jobs",
            "all run s",
            "one more job s",
            "p99 s",
            "bare pod s",
            "plan p50 ms",
            "p99 ms",
            "operator MB",
            "extender MB",
        ),
        [
            (
                str(scale["jobs"]),
                f"{scale['all_running_s']:.1f}",
                f"{scale['start_s']:.2f}",
                f"{scale['start_p99_s']:.2f}",
                f"{scale['pod_start_s']:.2f}",
                _shown(scale["plan_p50_ms"]),
                _shown(scale["plan_p99_ms"]),
                f"{scale['memory_mb']['operator']:.0f}",
                f"{scale['memory_mb']['extender']:.0f}",
            )
            for scale in report["scale"]
        ],
    )
    reconcile, bare = report["reconcile"], report["reconcile_bare"]
    references = (
        f"bound per second: {binding['with_extender_per_s']:.0f} with the extender, "
        f"{binding['without_extender_per_s']:.0f} without, {binding['with_bare_extender_per_s']:.0f} with a bare one\n"
        f"reconciled once: {reconcile['reconciled_s']:.1f} s, {bare['reconciled_s']:.1f} s by a bare kopf handler "
        f"({bare['operator_mb']:.0f} MB)\n"
        f"filter at the client: p99 {report['filter_quiet']['p99_ms']:.2f} ms, "
        f"of a bare extender {report['filter_bare']['p99_ms']:.2f} ms; while rounds are planned: "
        f"{report['filter_while_planning']['p99_ms']:.2f} ms, at the same moments "
        f"{report['filter_bare_while_planning']['p99_ms']:.2f} ms of a bare one"
    )
    one = report["round"]
    in_round = (
        f"while rounds are planned: one more job p50 {one['start_p50_s']:.2f} s, p99 {one['start_p99_s']:.2f} s "
        f"({one['starts']} jobs); plan {_shown(one['plan_ms'])} ms, written in {_shown(one['write_ms'])} ms, "
        f"{one['status_writes']:.0f} statuses in each, {'before' if one['in_time'] else 'after'} the boundary"
    )
    verbs = (
        "in the extender while pods were bound: "
        f"filter p50 {binding['filter_p50_ms']:.2f} ms, p99 {binding['filter_p99_ms']:.2f} ms, "
        f"bind p50 {binding['bind_p50_ms']:.1f} ms, p99 {binding['bind_p99_ms']:.1f} ms"
    )
    return "\n\n".join((head(report["machine"]), aims, references, scales, in_round, verbs))


def beside_text(report: Mapping[str, Any]) -> str:
    """The figures with an aim, of the other version and of this one."""
    before = {aim["name"]: aim["value"] for aim in report["beside"]["aims"]}
    rows = [
        (aim["name"], f"{before[aim['name']]:.2f}", f"{aim['value']:.2f}", _ratio(aim["value"], before[aim["name"]]))
        for aim in report["aims"]
    ]
    return text_table(("figure", "beside", "this", "this / beside"), rows)


def _ratio(value: float, reference: float) -> str:
    return f"{value / reference:.2f}" if reference else ""


def head(machine: Mapping[str, Any]) -> str:
    """The machine in one line."""
    return (
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gib']:.0f} GiB, "
        f"Kubernetes {machine['kubernetes']}, Python {machine['python']}"
    )


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
