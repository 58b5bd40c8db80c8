"""Snapshots and plans as JSON text. Unknown fields and bad values are refused with one line that names the field."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from synergy_core.model.answer import Plan, Waiting
from synergy_core.model.names import unknown_field
from synergy_core.model.snapshot import (
    Allocation,
    FieldError,
    Job,
    Node,
    NodeGroup,
    NodeShare,
    Profile,
    Promise,
    QuotaDraw,
    QuotaLimit,
    Snapshot,
    Tenant,
)
from synergy_core.model.usage import Usage

_SNAPSHOT = TypeAdapter(Snapshot)

_KINDS: Final = (Allocation, Job, Node, NodeGroup, NodeShare, Profile, Promise, QuotaDraw, QuotaLimit, Snapshot, Tenant)
_FIELDS: Final = sorted({one.name for kind in _KINDS for one in fields(kind)})
"""Names of fields, from which a misspelt one is corrected."""
_ONLY_WHEN_SET = frozenset(
    {
        (Node, "further"),
        (Node, "further_used"),
        (Node, "schedulable"),
        (Node, "domains"),
        (Node, "domain_bytes_per_s"),
        (Node, "empty_by"),
        (Node, "reopens_at"),
        (Node, "price_per_hour"),
        (NodeShare, "further"),
        (Plan, "promoted"),
        (Plan, "late"),
        (Plan, "estimates"),
        (Allocation, "estimated"),
        (Allocation, "spread"),
        (Allocation, "delta_by_fractions"),
        (Job, "measured"),
        (Plan, "shares_from"),
        (Plan, "isolated"),
        (Profile, "further"),
        (Profile, "client_thread_percent"),
        (Job, "further_min"),
        (Job, "further_max"),
        (Job, "started_s"),
        (Job, "promoted_gpu_s"),
        (Job, "promoted_waiting_s"),
        (Job, "run_started_s"),
        (Job, "exact_steps"),
        (Job, "steps_left"),
        (Job, "resumes_s"),
        (Job, "seconds_left"),
        (Job, "pause_share"),
        (Job, "spread_speed"),
        (Job, "spread_speeds"),
        (Job, "level_speeds"),
        (Job, "received_spread_s"),
        (Job, "model"),
        (Job, "batch_size"),
        (Job, "model_bytes"),
        (Job, "overlap"),
        (Job, "preemption_cost_s"),
        (Job, "isolated_s"),
        (Job, "isolated_steps"),
        (Job, "purpose"),
        (Job, "cpu_millis_min"),
        (Job, "cpu_millis_max"),
        (Job, "memory_bytes_min"),
        (Job, "memory_bytes_max"),
        (Job, "placement"),
        (Job, "nodes"),
        (Job, "sharing_across_tenants"),
        (Job, "min_throughput_fraction"),
        (Job, "usage"),
        (Job, "shared"),
        (Job, "beside_references"),
        (Usage, "counters"),
        (Usage, "utilization"),
        (Usage, "memory_utilization"),
        (Node, "gpu_memory_bytes"),
        (Node, "client_memory_bytes"),
        (Node, "client_thread_percent"),
        (Job, "deadline_s"),
        (Job, "priority"),
        (Job, "urgent"),
        (Job, "preempted_s"),
        (Tenant, "preemptions_per_hour"),
        (Tenant, "preempted"),
        (Plan, "gave_way"),
        (Plan, "displaced"),
        (Plan, "growth"),
        (Plan, "unneeded"),
        (Waiting, "at"),
        (Snapshot, "node_groups"),
        (Snapshot, "tenants"),
        (Tenant, "parent"),
        (Tenant, "guarantee"),
        (Tenant, "limit"),
        (Tenant, "borrowing"),
        (Tenant, "lending"),
        (Snapshot, "quotas"),
        (Snapshot, "history"),
        (Snapshot, "model_profiles"),
        (Snapshot, "config"),
        (Node, "devices_per_gpu"),
        (Node, "counted_as"),
        (NodeGroup, "counted_as"),
        (Job, "quotas"),
        (Job, "gpus_per_worker"),
        (QuotaLimit, "used"),
        (QuotaDraw, "once"),
        (QuotaDraw, "per_pod"),
    }
)
"""Fields that are written only where they differ from their default."""


class SnapshotError(ValueError):
    """A snapshot that cannot be read. The text is one line: the field's path and what is wrong with it."""


def parse_snapshot(text: str | bytes) -> Snapshot:
    """Snapshot from its JSON form; raises SnapshotError naming the first bad field."""
    try:
        return _SNAPSHOT.validate_json(text)
    except ValidationError as error:
        raise SnapshotError(one_line(error.errors()[0], known=_FIELDS)) from None


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """The JSON form of a snapshot, as `parse_snapshot` reads it back equal."""
    document: dict[str, Any] = _document(snapshot)
    return document


def plan_document(plan: Plan, *, seconds: float) -> dict[str, Any]:
    """The JSON form of a plan; `seconds` is how long planning took, measured by the caller."""
    return {**_document(plan), "seconds": seconds}


def _document(value: Any) -> Any:
    if is_dataclass(value):
        kind = type(value)
        return {
            item.name: _document(getattr(value, item.name))
            for item in fields(value)
            if (kind, item.name) not in _ONLY_WHEN_SET or getattr(value, item.name) != _default(item)
        }
    if isinstance(value, tuple):
        return [_document(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _document(entry) for key, entry in value.items()}
    return value


def _default(item: "Field[Any]") -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def one_line(details: ErrorDetails, *, whole: str = "snapshot", known: Iterable[str] = ()) -> str:
    """What pydantic says, as one line that names the field.

    `whole` names the document. A misspelt field is corrected from the names in `known`.
    """
    path = _path(details["loc"])
    kind, given = details["type"], details["input"]
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, FieldError):
        between = "." if path and not cause.path.startswith("[") else ""
        return f"{path}{between}{cause.path}: {cause.problem}"
    if kind == "unexpected_keyword_argument":
        return f"{path}: {unknown_field(str(details['loc'][-1]), known)}"
    if kind == "missing":
        return f"{path}: missing; add it"
    if kind == "json_invalid":
        return f"not JSON: {details['ctx']['error']}"
    problem = details["msg"][0].lower() + details["msg"][1:]
    shown = "" if isinstance(given, (dict, list, tuple)) else f", is {given!r}"
    return f"{path or whole}: {problem}{shown}"


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path
