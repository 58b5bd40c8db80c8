"""ResourceQuotas reduced to what plans need, and what of a pod template their scopes go by.

As Kubernetes matches them (pkg/quota/v1/evaluator/core/pods.go): a quota with scopes counts the pods that all of them
match, and no other objects. Workers request CPU and memory: `BestEffort` never matches them.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.nodes import Object
from synergy_api.devices import counted_as, device_class, is_extended
from synergy_api.quantity import byte_count, cpu_millis, whole_count

_OF_CPU: Final = frozenset({"cpu", "requests.cpu", "limits.cpu"})
_OF_MEMORY: Final = frozenset({"memory", "requests.memory", "limits.memory"})
_REQUESTS: Final = "requests."
OF_PODS: Final = frozenset({"pods", "count/pods"})
OF_SERVICES: Final = frozenset({"services", "count/services"})
OF_JOBS: Final = frozenset({"count/jobs.batch"})
_READ: Final = _OF_CPU | _OF_MEMORY | OF_PODS | OF_SERVICES | OF_JOBS
_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class Scope:
    """One requirement of a quota on the pods that it counts."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaView:
    """One ResourceQuota: its limits that a job's pods or objects can run into, in milli-CPU, bytes and whole numbers,
    as the API server goes by them (`status`)."""

    namespace: str
    name: str
    hard: Mapping[str, int]
    used: Mapping[str, int]
    scopes: tuple[Scope, ...] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def counts(self, scopes: "PodScopes", priority_class: str) -> bool:
        """Whether it counts pods of a template; `priority_class` is what they get where it names none."""
        return all(_matches(scope, scopes, scopes.priority_class or priority_class) for scope in self.scopes)


@dataclass(frozen=True, slots=True)
class PodScopes:
    """What quotas read of a pod template. `limits_beside` is how much more its pods have of limits than of requests;
    workers' first containers have as much of both."""

    priority_class: str = ""
    terminating: bool = False
    crosses_namespaces: bool = False
    limits_beside: Amounts = NOTHING


def read_quota(item: Object) -> QuotaView:
    """The view of a ResourceQuota. Before the API server has counted, what its spec says."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    selector = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return QuotaView(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        hard=_amounts(status.get("hard") or spec.get("hard") or {}),
        used=_amounts(status.get("used") or {}),
        scopes=(
            *(Scope(name) for name in spec.get("scopes") or []),
            *(Scope(one["scopeName"], one["operator"], tuple(one.get("values") or ())) for one in selector),
        ),
    )


def _amounts(listed: Mapping[str, Any]) -> dict[str, int]:
    """Those that are read. The API server has checked the quantities: what it took and this does not read is no
    number that anything is counted in."""
    found = {}
    for name in sorted(name for name in listed if name in _READ or _device(name)):
        with suppress(ValueError):
            found[name] = _amount(name, listed[name])
    return found


def _amount(name: str, quantity: Any) -> int:
    if name in _OF_CPU:
        return cpu_millis(quantity)
    return byte_count(quantity) if name in _OF_MEMORY else whole_count(quantity)


def counted(resource: str) -> str:
    """What of a job's share of its nodes a limit counts (`QuotaLimit.counts`)."""
    if resource in _OF_CPU:
        return "cpu_millis"
    if resource in _OF_MEMORY:
        return "memory_bytes"
    device = _device(resource)
    return counted_as(device) if device else "objects"


def _device(resource: str) -> str:
    """The resource of GPUs or other devices that a limit counts; empty where it counts something else."""
    if device_class(resource) is not None:
        return resource
    asked = resource.removeprefix(_REQUESTS)
    return asked if asked != resource and is_extended(asked) else ""


def _matches(scope: Scope, pod: PodScopes, priority_class: str) -> bool:
    match scope.name:
        case "Terminating":
            return pod.terminating
        case "NotTerminating":
            return not pod.terminating
        case "NotBestEffort":
            return True
        case "PriorityClass":
            return _selects(scope, priority_class)
        case "CrossNamespacePodAffinity":
            return pod.crosses_namespaces
        case _:  # BestEffort, and those that are of other objects than pods
            return False


def _selects(scope: Scope, priority_class: str) -> bool:
    match scope.operator:
        case "In":
            return priority_class in scope.values
        case "NotIn":
            return priority_class not in scope.values
        case "DoesNotExist":
            return not priority_class
        case _:
            return bool(priority_class)


def pod_scopes(pod_spec: Object) -> PodScopes:
    """What quotas read of a template's pod spec; nothing if it is invalid, which the operator reports to the user."""
    try:
        return PodScopes(
            priority_class=_named(pod_spec.get("priorityClassName") or ""),
            terminating=pod_spec.get("activeDeadlineSeconds") is not None,
            crosses_namespaces=any(map(_crosses, _affinity_terms(pod_spec.get("affinity") or {}))),
            limits_beside=_limits_beside(pod_spec),
        )
    except (ValueError, TypeError, AttributeError, KeyError):
        return PodScopes()


def _named(name: Any) -> str:
    """Raises ValueError for what can be no object's name: it would be kept as it is, however large."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise ValueError("no name")
    return name


def _limits_beside(pod_spec: Object) -> Amounts:
    beside = [*(pod_spec.get("containers") or [])[1:]]
    beside += [c for c in pod_spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"]
    total = NOTHING
    for container in beside:
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        asked = {**limits, **(resources.get("requests") or {})}
        total = total.plus(Amounts.parse(limits).minus(Amounts.parse(asked)).at_least(NOTHING))
    return total._replace(gpus=0)


def _affinity_terms(affinity: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for kind in ("podAffinity", "podAntiAffinity"):
        given = affinity.get(kind) or {}
        yield from given.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        for preferred in given.get("preferredDuringSchedulingIgnoredDuringExecution") or []:
            yield preferred.get("podAffinityTerm") or {}


def _crosses(term: Mapping[str, Any]) -> bool:
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None
