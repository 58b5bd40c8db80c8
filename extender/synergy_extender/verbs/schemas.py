"""The scheduler verbs as pydantic models: what the OpenAPI document of the scheduler port says.

The names are those of k8s.io/kube-scheduler/extender/v1. Requests are decoded as the structs of `wire`, which read the
same fields faster (decision 35); a test holds the two together.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal


class _Open(BaseModel):
    """Part of a Kubernetes object: it has more fields than are read."""

    model_config = ConfigDict(extra="allow")


class _Verb(BaseModel):
    """A request or an answer, with Go's field names."""

    model_config = ConfigDict(alias_generator=to_pascal, populate_by_name=True)


class PodMetadata(_Open):
    """What the verbs read of a pod's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Pod(_Open):
    """The pod to place."""

    metadata: PodMetadata = PodMetadata()


class NodeMetadata(_Open):
    """A node's name."""

    name: str = ""


class Node(_Open):
    """A whole node. It goes back as it came."""

    metadata: NodeMetadata = NodeMetadata()


class NodeList(_Open):
    """Whole nodes."""

    items: list[Node] | None = None


class ExtenderArgs(_Verb):
    """Request of filter and prioritize."""

    pod: Pod
    nodes: NodeList | None = Field(None, description="Whole nodes, from a scheduler without `nodeCacheCapable`.")
    node_names: list[str] | None = Field(None, description="Names of nodes, from a scheduler with `nodeCacheCapable`.")


class ExtenderFilterResult(_Verb):
    """Answer of filter, in the form of the request: names for names, whole nodes for whole nodes."""

    node_names: list[str] | None = Field(None, description="The nodes that pass: the planned node, or none.")
    nodes: NodeList | None = Field(None, description="The same as whole nodes.")
    failed_nodes: dict[str, str] = Field({}, description="Always empty: no preemption would help.")
    failed_and_unresolvable_nodes: dict[str, str] = Field({}, description="Why each other node does not pass.")
    error: str = Field("", description="A refusal that may pass within seconds; kube-scheduler tries again.")


class HostPriority(_Verb):
    """Score of one node."""

    host: str
    score: int = Field(ge=0, le=10)


HostPriorityList = list[HostPriority]


class ExtenderBindingArgs(_Verb):
    """Request of bind."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = Field(alias="PodUID")
    node: str


class ExtenderBindingResult(_Verb):
    """Answer of bind."""

    error: str = Field("", description="Why the pod is not bound; empty if it is.")


class MetaPod(_Verb):
    """A pod by its UID."""

    uid: str = Field("", alias="UID")


class MetaVictims(_Verb):
    """Pods to evict from one node."""

    pods: list[MetaPod] | None = None
    num_pdb_violations: int = Field(0, alias="NumPDBViolations")


class ExtenderPreemptionArgs(_Verb):
    """Request of preempt. Its victims are not read: the extender never names one."""

    pod: Pod
    node_name_to_victims: dict[str, Any] | None = None
    node_name_to_meta_victims: dict[str, Any] | None = None


class ExtenderPreemptionResult(_Verb):
    """Answer of preempt: the nodes that remain candidates. The extender answers with none."""

    node_name_to_meta_victims: dict[str, MetaVictims] = {}
