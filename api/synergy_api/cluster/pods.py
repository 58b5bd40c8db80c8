"""What a Pod holds of its node, counted as the kube-scheduler counts it (component-helpers/resource, PodRequests)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from synergy_api.amounts import DIMENSIONS, NOTHING, Amounts
from synergy_api.cluster.nodes import Object
from synergy_api.devices import device_counts

TERMINAL_PHASES: Final = ("Succeeded", "Failed")


def is_terminal(pod: Object) -> bool:
    """True when all containers have ended for good: such a pod holds nothing."""
    return pod.get("status", {}).get("phase") in TERMINAL_PHASES


def pod_requests(pod: Object) -> Amounts:
    """What the pod holds of its node, whatever its phase.

    Containers are summed, init containers run one after another beside the restartable ones (sidecars) started before
    them, pod-level requests replace the sum, overhead comes on top. During an in-place resize the greater of desired,
    allocated and actual counts; while the resize is infeasible the desired does not.

    Raises ValueError naming the quantity that does not parse.
    """
    spec, status = pod.get("spec", {}), pod.get("status", {})
    infeasible = _resize_infeasible(pod)
    main = NOTHING
    held = {s.get("name"): s for s in status.get("containerStatuses") or []}
    for container in spec.get("containers") or []:
        main = main.plus(_container(container, held, infeasible))
    held = {s.get("name"): s for s in status.get("initContainerStatuses") or []}
    main = _with_init(main, spec.get("initContainers") or [], held, infeasible)
    return _pod_level(spec, status, main, infeasible).plus(Amounts.parse(spec.get("overhead") or {}))


def device_requests(pod_spec: Object) -> dict[str, int]:
    """The extended resources that a pod holds, by name, whoever's devices they are.

    Raises ValueError naming the quantity that does not parse.
    """
    main: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod_spec.get("containers") or []:
        main += _devices(container)
    for container in pod_spec.get("initContainers") or []:
        own = _devices(container)
        if container.get("restartPolicy") == "Always":
            main, sidecars = main + own, sidecars + own
        peak |= own + sidecars
    return dict(main | peak)


def _devices(container: Object) -> Counter[str]:
    return device_counts((container.get("resources") or {}).get("requests") or {})


def sidecar_requests(pod_spec: Object) -> Amounts:
    """What the containers of a pod spec beside the first ask for, restartable init containers included.

    Raises ValueError if a quantity does not parse.
    """
    beside = [*(pod_spec.get("containers") or [])[1:]]
    beside += [c for c in pod_spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"]
    total = NOTHING
    for container in beside:
        total = total.plus(_asked(container))
    return total


def init_requests(pod_spec: Object) -> dict[str, Amounts]:
    """What each init container that ends asks for, by name, with the restartable ones that were started before it.

    Raises ValueError if a quantity does not parse.
    """
    found: dict[str, Amounts] = {}
    beside = NOTHING
    for container in pod_spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            beside = beside.plus(_asked(container))
        else:
            found[container["name"]] = beside.plus(_asked(container))
    return found


def _asked(container: Object) -> Amounts:
    resources = container.get("resources") or {}
    return Amounts.parse({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def least_requests(pod_spec: Object) -> Amounts:
    """What a pod of this spec must have at least: all its sidecars leave the first container something, and each init
    container has room. Nothing where there are none.

    Raises ValueError if a quantity does not parse.
    """
    beside = sidecar_requests(pod_spec)
    least = Amounts(0, *(amount + 1 for amount in beside.beside_gpus)) if any(beside) else NOTHING
    for needs in init_requests(pod_spec).values():
        least = least.at_least(needs)
    return least


def _with_init(main: Amounts, containers: Iterable[Object], held: Mapping[Any, Object], infeasible: bool) -> Amounts:
    sidecars, peak = NOTHING, NOTHING
    for container in containers:
        if container.get("restartPolicy") == "Always":
            own = _container(container, held, infeasible)
            main, sidecars = main.plus(own), sidecars.plus(own)
            peak = peak.at_least(sidecars)
        else:
            peak = peak.at_least(_container(container, {}, infeasible).plus(sidecars))
    return main.at_least(peak)


def _container(container: Object, statuses: Mapping[Any, Object], infeasible: bool) -> Amounts:
    desired = _requests(container)
    status = statuses.get(container.get("name"))
    if status is None or status.get("resources") is None:
        return desired
    held = _requests(status).at_least(Amounts.parse(status.get("allocatedResources") or {}))
    return held if infeasible else desired.at_least(held)


def _requests(holder: Object) -> Amounts:
    return Amounts.parse((holder.get("resources") or {}).get("requests") or {})


def _pod_level(spec: Object, status: Object, counted: Amounts, infeasible: bool) -> Amounts:
    """Pod-level requests replace the containers' sum, for the resources that they name."""
    named = (spec.get("resources") or {}).get("requests") or {}
    holder = {"name": "", "resources": spec.get("resources")}
    effective = _container(holder, {"": status}, infeasible)
    return counted._replace(**{one.field: getattr(effective, one.field) for one in DIMENSIONS if one.resource in named})


def _resize_infeasible(pod: Object) -> bool:
    """Whether the kubelet said so of the spec as it is: what it said of an older one is no answer to a newer."""
    generation = (pod.get("metadata") or {}).get("generation")
    for condition in pod.get("status", {}).get("conditions") or []:
        if condition.get("type") == "PodResizePending":
            seen = condition.get("observedGeneration")
            return condition.get("reason") == "Infeasible" and (
                seen is None or generation is None or bool(seen >= generation)
            )
    return False
