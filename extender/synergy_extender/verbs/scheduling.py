"""filter, prioritize and preempt: pure answers, given where the plan wants the pod."""

from synergy_extender.verbs.place import OTHER_NODE, Refusal
from synergy_extender.verbs.wire import (
    ExtenderArgs,
    FilterResult,
    HostPriority,
    PreemptionResult,
    filter_answer,
    offered_nodes,
)

_BEST = 10


def filter_nodes(args: ExtenderArgs, place: str | Refusal) -> FilterResult:
    """Lets the planned node pass and no other. Why the others do not is said only where no node passes: kube-scheduler
    asks for it then, and a reason for each of a thousand nodes would be most of the work.

    A refusal that cannot pass soon is unresolvable on every node, which spares the kube-scheduler a useless preemption.
    """
    if isinstance(place, Refusal):
        if place.transient:
            return FilterResult(error=place.why.value)
        refused = dict.fromkeys(offered_nodes(args), place.why.value)
        return filter_answer(args, None, refused)
    nodes = offered_nodes(args)
    if place in nodes:
        return filter_answer(args, place, {})
    return filter_answer(args, None, dict.fromkeys(nodes, OTHER_NODE))


def prioritize_nodes(args: ExtenderArgs, place: str | Refusal) -> list[HostPriority]:
    """The best score for the planned node, none for others."""
    return [HostPriority(node, _BEST if node == place else 0) for node in offered_nodes(args)]


def refuse_preemption() -> PreemptionResult:
    """No node remains a candidate: the plan decides at a round's end which runs leave, never the kube-scheduler."""
    return PreemptionResult()
