"""What a Kubernetes Node says about itself, as functions of its JSON: readiness, taints, what a pod spec admits."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Object = Mapping[str, Any]
"""A Kubernetes object or a part of one as decoded JSON."""

_REPELLING: Final = ("NoSchedule", "NoExecute")
_OWN_TAINTS: Final = "node.kubernetes.io/"


def labels_of(node: Object) -> Mapping[str, str]:
    """The node's labels, empty when it has none."""
    labels: Mapping[str, str] = node.get("metadata", {}).get("labels") or {}
    return labels


def is_ready(node: Object) -> bool:
    """True when the node's Ready condition is True and it is not being deleted."""
    if node.get("metadata", {}).get("deletionTimestamp"):
        return False
    conditions = node.get("status", {}).get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def is_cordoned(node: Object) -> bool:
    """True when `kubectl cordon` marked the node: what runs there stays, nothing new comes."""
    return bool(node.get("spec", {}).get("unschedulable"))


def tolerates(toleration: Object, taint: Object) -> bool:
    """Whether one toleration covers one taint, as core/v1 Toleration.ToleratesTaint has it."""
    effect, key = toleration.get("effect") or "", toleration.get("key") or ""
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def repelling_taint(node: Object, tolerations: Sequence[Object]) -> Object | None:
    """The first NoSchedule or NoExecute taint of the node that none of `tolerations` covers; None if there is none."""
    for taint in node.get("spec", {}).get("taints") or []:
        if taint.get("effect") in _REPELLING and not any(tolerates(t, taint) for t in tolerations):
            found: Object = taint
            return found
    return None


def pod_spec_admits(spec: Object, node: Object, tolerations: Sequence[Object] = ()) -> bool:
    """Whether a pod of this spec may be on the node: node selector, required node affinity and taints.

    `tolerations` are those that every worker pod gets in addition to the spec's own. Cordons and readiness are not
    looked at: they say when the node takes pods, not which.
    """
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None and not _any_term(required.get("nodeSelectorTerms") or [], node):
        return False
    return repelling_taint(_without_cordon(node), [*(spec.get("tolerations") or []), *tolerations]) is None


def tolerations_of_all(nodes: Iterable[Object]) -> list[Object]:
    """Tolerations for all taints but those that Kubernetes set because something is wrong: a taint of an administrator
    keeps away only the jobs that do not tolerate it."""
    keys = {taint["key"] for node in nodes for taint in node["spec"].get("taints") or []}
    return [{"key": key, "operator": "Exists"} for key in sorted(keys) if not key.startswith(_OWN_TAINTS)]


def _without_cordon(node: Object) -> Object:
    taints = node.get("spec", {}).get("taints") or []
    kept = [t for t in taints if not str(t.get("key", "")).startswith(_OWN_TAINTS)]
    return {"spec": {"taints": kept}}


def _any_term(terms: Iterable[Object], node: Object) -> bool:
    """Terms are alternatives; a term without expressions or fields matches nothing."""
    for term in terms:
        expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
        named = {"metadata.name": str(node.get("metadata", {}).get("name", ""))}
        if (expressions or fields) and (
            all(_holds(e, labels_of(node)) for e in expressions) and all(_holds(f, named) for f in fields)
        ):
            return True
    return False


def _holds(requirement: Object, labels: Mapping[str, str]) -> bool:
    key, operator = requirement.get("key", ""), requirement.get("operator")
    values = requirement.get("values") or []
    present = key in labels
    match operator:
        case "In":
            return present and labels[key] in values
        case "NotIn":
            return not present or labels[key] not in values
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case "Gt" | "Lt":
            return present and _compares(labels[key], values, greater=operator == "Gt")
        case _:
            return False


def _compares(label: str, values: Sequence[str], *, greater: bool) -> bool:
    try:
        have, want = int(label), int(values[0])
    except (ValueError, IndexError):
        return False
    return have > want if greater else have < want
