"""The scheduler verbs on the wire (k8s.io/kube-scheduler/extender/v1): the JSON keys are Go's field names.

Of a request only what is used is decoded. `NodeNames` is null where the scheduler sends whole `Nodes`, and the answer
must then carry `Nodes`; a null where a list is expected would let no node pass.
"""

import msgspec
from msgspec import Raw, Struct


class PodMetadata(Struct):
    """What of a pod's metadata the verbs look at."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Pod(Struct):
    """The pod to place."""

    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)


class NodeMetadata(Struct):
    """A node's name."""

    name: str = ""


class NodeName(Struct):
    """What of a whole Node is read."""

    metadata: NodeMetadata = msgspec.field(default_factory=NodeMetadata)


class NodeList(Struct):
    """Whole nodes, kept as they came: they go back unchanged."""

    items: list[Raw] | None = None


class ExtenderArgs(Struct, rename="pascal"):
    """Request of filter and prioritize."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: list[str] | None = None


class NodesAnswer(Struct):
    """Whole nodes in an answer."""

    items: list[Raw]


class FilterResult(Struct, rename="pascal"):
    """Answer of filter. `failed_nodes` may pass after a preemption, `failed_and_unresolvable_nodes` may not."""

    node_names: list[str] | None = None
    nodes: NodesAnswer | None = None
    failed_nodes: dict[str, str] = msgspec.field(default_factory=dict)
    failed_and_unresolvable_nodes: dict[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class HostPriority(Struct, rename="pascal"):
    """Score of one node, an integer from 0 to 10."""

    host: str
    score: int


class MetaPod(Struct):
    """A pod by its UID."""

    uid: str = msgspec.field(name="UID", default="")


class MetaVictims(Struct):
    """Pods to evict from one node."""

    pods: list[MetaPod] | None = msgspec.field(name="Pods", default=None)
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations", default=0)


class PreemptionArgs(Struct, rename="pascal"):
    """Request of preempt; the victims are not read, since none is ever chosen."""

    pod: Pod
    node_name_to_victims: dict[str, Raw] | None = None
    node_name_to_meta_victims: dict[str, Raw] | None = None


class PreemptionResult(Struct, rename="pascal"):
    """Answer of preempt: the nodes that remain candidates, with their victims."""

    node_name_to_meta_victims: dict[str, MetaVictims] = msgspec.field(default_factory=dict)


class BindingArgs(Struct):
    """Request of bind."""

    pod_name: str = msgspec.field(name="PodName")
    pod_namespace: str = msgspec.field(name="PodNamespace")
    pod_uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class BindingResult(Struct, rename="pascal"):
    """Answer of bind."""

    error: str = ""


_NODE = msgspec.json.Decoder(NodeName)


def offered_nodes(args: ExtenderArgs) -> list[str]:
    """Names of the nodes in the request, in whichever form they came.

    Raises msgspec.DecodeError if a whole node is not an object with a name.
    """
    if args.node_names is not None:
        return args.node_names
    items = (args.nodes.items if args.nodes is not None else None) or []
    return [_NODE.decode(item).metadata.name for item in items]


def filter_answer(args: ExtenderArgs, passed: str | None, unresolvable: dict[str, str]) -> FilterResult:
    """An answer in the form of the request that lets at most one node pass."""
    if args.nodes is not None and args.node_names is None:
        whole = [raw for raw in args.nodes.items or [] if _NODE.decode(raw).metadata.name == passed]
        return FilterResult(nodes=NodesAnswer(whole), failed_and_unresolvable_nodes=unresolvable)
    names = [passed] if passed is not None else []
    return FilterResult(node_names=names, failed_and_unresolvable_nodes=unresolvable)
