"""How a GPUPool grows: the shape of its new nodes, how many it may have, and the ProvisioningRequest class."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from synergy_api.base import ApiModel, Quantity


class NewNode(ApiModel):
    """What a node offers that is not there yet. Plans take systemReserved off, as they do from nodes that are there."""

    gpus: Annotated[int, Field(ge=1, le=1024, description="GPUs of a new node.")]
    cpu: Annotated[Quantity, Field(description="Allocatable CPU of a new node, such as 96.")]
    memory: Annotated[Quantity, Field(description="Allocatable memory of a new node, such as 1Ti.")]


class NewNodeTaint(ApiModel):
    """A taint of new nodes."""

    key: Annotated[str, Field(min_length=1, max_length=317, description="The taint's key.")]
    value: Annotated[str, Field(max_length=63, description="The taint's value.")] = ""
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], Field(description="What the taint does.")
    ] = "NoSchedule"


_RULES: list[Any] = [
    {
        "rule": "self.timeoutSeconds >= self.provisionSeconds",
        "message": "timeoutSeconds must be at least provisionSeconds",
        "fieldPath": ".timeoutSeconds",
    }
]


class PoolAutoscaling(ApiModel):
    """The pool's nodes come and go by an autoscaler."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _RULES})

    max_nodes: Annotated[int, Field(ge=0, le=15000, description="Nodes of the pool at the most, those there included.")]
    node: Annotated[NewNode, Field(description="What a new node offers.")]
    taints: Annotated[
        list[NewNodeTaint],
        Field(
            max_length=16,
            description="Taints of new nodes. Only jobs that tolerate them count on new nodes; all tolerate "
            "nvidia.com/gpu.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ] = []
    provisioning_class: Annotated[
        Literal[
            "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
            "check-capacity.autoscaling.x-k8s.io",
            "queued-provisioning.gke.io",
        ],
        Field(description="The provisioningClassName of the ProvisioningRequests that ask for nodes."),
    ] = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    wait_seconds: Annotated[
        int,
        Field(ge=0, le=86400, description="A job waits so long, all its waits together, before nodes are asked for."),
    ] = 60
    provision_seconds: Annotated[
        int, Field(ge=1, le=86400, description="How long a new node usually takes; waiting jobs are told so.")
    ] = 300
    timeout_seconds: Annotated[
        int,
        Field(
            ge=1,
            le=86400,
            description="A request whose nodes are not all there by then has failed. The next one waits a minute, and "
            "after each further failure twice as long, up to an hour.",
        ),
    ] = 900
    idle_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=86400,
            description="A node without a job is kept from scale-down for so long, and labelled idle afterwards.",
        ),
    ] = 600
