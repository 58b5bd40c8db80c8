"""Is the installation well? From what a client could find out, one finding for each check, with what to do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from synergy_api.cluster.mps import mps_problems
from synergy_api.cluster.pool import read_pools
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.names import ANNOTATION_VERSION, PRODUCT_VERSION
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME
from synergy_view.words import count, duration, listed

Object = Mapping[str, Any]
Level = Literal["ok", "warning", "failed", "unknown"]

DEFINITIONS: Final = ("gpupools", "schedulingpolicies", "tenants", "throughputprofiles", "trainingjobs")
COMPONENTS: Final = ("kube-synergy-operator", "kube-synergy-extender", "kube-synergy-scheduler")
DASHBOARD: Final = "kube-synergy-dashboard"
"""Its Deployment, which may be missing: nothing else needs it."""
_SKEW_S: Final = 5.0
"""Clocks that differ by more confuse leases and ages; NTP keeps them within a second."""
_OLDEST_MINOR: Final = 33
"""As `kubeVersion` of the chart: pods are resized in place from then on."""
_SOON_S: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found. `unknown`: the user may not read what it needs."""

    what: str
    level: Level
    found: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a client found out; None where the API server refuses to say."""

    server_version: str
    clock_skew_s: float | None = None
    """The API server's clock less this machine's."""
    definitions: Mapping[str, Object] | None = None
    """CustomResourceDefinitions by plural name."""
    deployments: Sequence[Object] | None = None
    """Those of the namespace that kube-synergy is installed in."""
    certificate_left_s: float | None = None
    """Until the extender's certificate ends."""
    nodes: Sequence[Object] | None = None
    capacities: Sequence[NodeCapacity] = ()
    pools: Sequence[Object] | None = None
    policies: Sequence[Object] | None = None
    permissions: Mapping[str, bool] = field(default_factory=dict)
    """By `verb resource`, whether the user may do that in the namespace that was asked for."""


def diagnose(facts: Facts) -> list[Check]:
    """The findings, in the order in which trouble is best mended."""
    checks = [
        _kubernetes(facts.server_version),
        _clock(facts.clock_skew_s),
        _definitions(facts.definitions),
        *_components(facts.deployments),
        _certificate(facts.certificate_left_s),
        _devices(facts.nodes, facts.capacities),
        _sharing(facts.capacities, mps_problems(facts.nodes or (), read_pools(facts.pools or ())[0])),
        _pools(facts.pools),
        _policy(facts.policies),
        _dashboard(facts.deployments),
    ]
    return [*checks, *_permissions(facts.permissions)]


def _not_allowed(what: str, resource: str) -> Check:
    return Check(what, "unknown", f"you may not read {resource}", "ask the cluster's administrator to run this command")


def _kubernetes(version: str) -> Check:
    digits = version.lstrip("v").split(".")
    minor = int("".join(c for c in digits[1] if c.isdigit()) or 0) if len(digits) > 1 else 0
    if digits[0] == "1" and minor < _OLDEST_MINOR:
        todo = f"upgrade Kubernetes to 1.{_OLDEST_MINOR} or later"
        return Check("Kubernetes", "failed", f"{version}: too old for resizing and admission policies", todo)
    return Check("Kubernetes", "ok", version)


def _clock(skew_s: float | None) -> Check:
    if skew_s is None:
        return Check("clock", "unknown", "the API server does not tell its time")
    if abs(skew_s) > _SKEW_S:
        todo = "synchronise this machine's clock; if it is right, the control plane's"
        return Check("clock", "warning", f"the API server's clock is {skew_s:+.0f} s from this machine's", todo)
    return Check("clock", "ok", f"within {_SKEW_S:.0f} s of the API server's")


def _definitions(found: Mapping[str, Object] | None) -> Check:
    what = "resource definitions"
    if found is None:
        return _not_allowed(what, "customresourcedefinitions")
    missing = [name for name in DEFINITIONS if name not in found]
    upgrade = f"install the chart of version {PRODUCT_VERSION}; its definitions are in crds/"
    if missing:
        return Check(what, "failed", f"missing: {', '.join(missing)}", upgrade)
    versions = {
        (item["metadata"].get("annotations") or {}).get(ANNOTATION_VERSION, "unknown") for item in found.values()
    }
    if versions != {PRODUCT_VERSION}:
        told = f"of version {', '.join(sorted(versions))}, and this command is {PRODUCT_VERSION}"
        return Check(what, "warning", told, "upgrade whichever is older")
    return Check(what, "ok", f"all {len(DEFINITIONS)} of version {PRODUCT_VERSION}")


def _components(deployments: Sequence[Object] | None) -> Iterable[Check]:
    if deployments is None:
        yield _not_allowed("components", "deployments")
        return
    by_name = {item["metadata"]["name"]: item for item in deployments}
    for name in COMPONENTS:
        item = by_name.get(name)
        if item is None:
            yield Check(
                name, "failed", "there is no such Deployment", "helm install it, or name its --system-namespace"
            )
            continue
        wanted = item["spec"].get("replicas", 1)
        ready = (item.get("status") or {}).get("readyReplicas", 0)
        if ready < wanted:
            namespace = item["metadata"]["namespace"]
            todo = f"kubectl describe pods -n {namespace} -l app.kubernetes.io/component={name.rpartition('-')[2]}"
            yield Check(name, "failed" if not ready else "warning", f"{ready} of {wanted} replicas are ready", todo)
        else:
            yield Check(name, "ok", f"{count(ready, 'replica')} ready")


def _dashboard(deployments: Sequence[Object] | None) -> Check:
    """Whether it records, and where its history is: a pod waits for ever for a volume that no StorageClass makes."""
    what = "dashboard"
    if deployments is None:
        return _not_allowed(what, "deployments")
    item = next((one for one in deployments if one["metadata"]["name"] == DASHBOARD), None)
    if item is None:
        return Check(what, "ok", "not installed: nothing is recorded")
    namespace, pod = item["metadata"]["namespace"], item["spec"]["template"]["spec"]
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if _is_claim(volume)]
    if not (item.get("status") or {}).get("readyReplicas", 0):
        todo = f"kubectl describe -n {namespace} pods -l app.kubernetes.io/component=dashboard"
        for claim in claims:
            todo += f" && kubectl describe -n {namespace} pvc {claim}"
        return Check(what, "warning", "its pod is not ready: nothing is recorded", todo)
    if claims:
        return Check(what, "ok", f"its history is on the volume of {listed(claims)}")
    if _has_database(pod):
        return Check(what, "ok", "its history is in a database")
    todo = "set dashboard.persistence.enabled in the chart's values, which needs a StorageClass"
    return Check(what, "warning", "its history is in its pod, and lost with the pod", todo)


def _is_claim(volume: Object) -> bool:
    return "persistentVolumeClaim" in volume


def _has_database(pod: Object) -> bool:
    """Whether its address comes from a Secret, as that of a PostgreSQL does."""
    environment = [one for container in pod["containers"] for one in container.get("env") or ()]
    return any(one["name"] == "SYNERGY_DASHBOARD_DATABASE" and "valueFrom" in one for one in environment)


def _certificate(left_s: float | None) -> Check:
    what = "certificate of the extender"
    if left_s is None:
        return _not_allowed(what, "its Secret")
    if left_s <= 0:
        return Check(what, "failed", "has ended", "look at the operator's log: it renews the certificate")
    if left_s < _SOON_S:
        todo = "look at the operator's log: it renews the certificate long before its end"
        return Check(what, "warning", f"ends in {duration(left_s)}", todo)
    return Check(what, "ok", f"valid for {duration(left_s)}")


def _devices(nodes: Sequence[Object] | None, capacities: Sequence[NodeCapacity]) -> Check:
    what = "GPUs"
    if nodes is None:
        return _not_allowed(what, "nodes")
    gpus = sum(one.gpus for one in capacities)
    if not gpus:
        todo = "install NVIDIA's device plugin, and GPU feature discovery for the node labels; for other GPUs write "
        todo += "a GPUPool with spec.devices"
        return Check(what, "failed", f"none of the {count(len(nodes), 'node')} offers GPUs", todo)
    problems = sorted({one.problem.finding.message for one in capacities if one.problem is not None})
    unnamed = [one.name for one in capacities if not one.gpu_type]
    if problems:
        return Check(what, "warning", problems[0], "mend the node's labels or its GPUPool")
    if unnamed:
        todo = "run GPU feature discovery, or name the type in a GPUPool that selects them"
        return Check(what, "warning", f"the GPU type of {listed(unnamed)} is not known", todo)
    lost = [one.name for one in capacities if one.gpus < one.gpus_built_in]
    if lost:
        offer, there = ("offers", "that node") if len(lost) == 1 else ("offer", "those nodes")
        todo = f"look at the device plugin's log on {there}"
        return Check(what, "warning", f"{listed(lost)} {offer} fewer GPUs than are built in", todo)
    types = sorted({one.gpu_type for one in capacities})
    return Check(what, "ok", f"{gpus} on {count(len(capacities), 'node')}: {', '.join(types)}")


def _sharing(capacities: Sequence[NodeCapacity], half_configured: Mapping[str, tuple[str, str]]) -> Check:
    what = "MPS"
    if half_configured:
        problem, todo = half_configured[min(half_configured)]
        alike = sorted(node for node, found in half_configured.items() if found == (problem, todo))
        return Check(what, "warning", f"GPUPools share GPUs, but {listed(alike)}: each {problem}", todo)
    shared = [one for one in capacities if one.replicas > 1]
    if not shared:
        return Check(what, "ok", "no node shares its GPUs")
    without = [one.name for one in shared if not one.mps]
    if without:
        todo = "configure the device plugin for MPS, or take the replicas away"
        return Check(
            what, "warning", f"{listed(without)} share their GPUs by time slicing, which plans do not use", todo
        )
    inexact = [one.name for one in shared if not one.exact]
    if inexact:
        todo = (
            "set the device plugin to packed and the GPUPool's sharing.preference to Packed, or one GPU for each node"
        )
        return Check(what, "warning", f"on {listed(inexact)} the plan cannot choose which jobs share a GPU", todo)
    return Check(
        what, "ok", f"{count(len(shared), 'node')} with up to {max(one.replicas for one in shared)} clients a GPU"
    )


def _pools(objects: Sequence[Object] | None) -> Check:
    what = "GPUPools"
    if objects is None:
        return _not_allowed(what, "gpupools")
    pools, problems = read_pools(objects)
    for problem in problems:
        return Check(
            what, "failed", f"{problem.pools[0]}: {problem.finding.message}", "correct the field that is named"
        )
    bad = [item for item in objects if (condition := _valid(item)) and condition["status"] == "False"]
    if bad:
        message = str((_valid(bad[0]) or {}).get("message", ""))
        return Check(what, "warning", f"{bad[0]['metadata']['name']}: {message}", "correct the pool")
    return Check(what, "ok", f"{count(len(pools), 'pool')}, none with a problem")


def _policy(objects: Sequence[Object] | None) -> Check:
    what = "SchedulingPolicy"
    if objects is None:
        return _not_allowed(what, "schedulingpolicies")
    found = next((item for item in objects if item["metadata"]["name"] == DEFAULT_POLICY_NAME), None)
    if found is None:
        todo = f"create a SchedulingPolicy {DEFAULT_POLICY_NAME}; the chart does that"
        return Check(what, "warning", f"there is none called {DEFAULT_POLICY_NAME}: plans follow the defaults", todo)
    condition = _valid(found)
    if condition is not None and condition["status"] == "False":
        return Check(what, "failed", str(condition.get("message", "")), "correct it; plans follow the last valid one")
    in_force = (found.get("status") or {}).get("inForce")
    if not in_force:
        return Check(what, "warning", "no extender has said that it follows it", "look at the extender's log")
    told = f"{in_force['policy']} with {in_force['mechanism']}, rounds of {in_force['roundSeconds']} s"
    return Check(what, "ok", told)


def _valid(item: Object) -> Object | None:
    conditions = (item.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == "Valid"), None)


def _permissions(permissions: Mapping[str, bool]) -> Iterable[Check]:
    if not permissions:
        return
    refused = sorted(name for name, allowed in permissions.items() if not allowed)
    if refused:
        todo = "ask for the ClusterRole edit, which includes kube-synergy-edit, in your namespace"
        yield Check("your rights", "warning", f"you may not: {', '.join(refused)}", todo)
    else:
        yield Check("your rights", "ok", f"{', '.join(sorted(permissions))}")
