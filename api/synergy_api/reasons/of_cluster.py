"""What is found in GPUPools, SchedulingPolicies, nodes and ThroughputProfiles."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason

_POOL: Final = (ReasonPlace.POOL,)
_FAILING: Final = (ReasonPlace.POOL_NODES, ReasonPlace.NODE)
_CLEAR: Final = "mend the node, then run kubectl synergy nodes --clear {node}"
_GROWTH: Final = (ReasonPlace.POOL_GROWTH,)
_POLICY: Final = (ReasonPlace.POLICY,)
_TREE: Final = (ReasonPlace.TENANT_TREE,)
_GUARANTEE: Final = (ReasonPlace.TENANT_GUARANTEE,)
_PROFILE: Final = (ReasonPlace.PROFILE,)

CLUSTER: Final[dict[Reason, Entry]] = {
    Reason.NODES_FOUND: Entry(_POOL, "the pool and its nodes agree", event="Normal"),
    Reason.AMBIGUOUS_POOL: Entry(
        _POOL,
        "GPUPools {pools} select the same nodes, where {used} is used",
        "make their spec.nodeSelector differ",
        event="Warning",
    ),
    Reason.RESERVED_TOO_LARGE: Entry(
        _POOL,
        "spec.systemReserved is more than node {node} has",
        "reserve less or narrow spec.nodeSelector",
        event="Warning",
    ),
    Reason.SHARING_MISMATCH: Entry(
        _POOL,
        "spec.sharing.{field} is {said}, but node {node} is labelled {label}={value}",
        "make the pool say what the device plugin does",
        "Plans go by the node's labels; its GPUs are shared where both say MPS.",
        event="Warning",
    ),
    Reason.INVALID_NODE: Entry(
        (ReasonPlace.NODE, ReasonPlace.POOL),
        "node {node}: {problem}",
        "correct it: status.allocatable is what the node's device plugin and kubelet report, the times are an "
        "administrator's",
        "A node says of itself what cannot be, or a time when it must be empty cannot be read. It gets no new jobs.",
        "Warning",
    ),
    Reason.NODE_OF_UNKNOWN_TYPE: Entry(
        (ReasonPlace.NODE,),
        "node {node} has GPUs of unknown type",
        "label it {label} or write a GPUPool that selects it",
        "The node gets no jobs.",
        "Warning",
    ),
    Reason.INVALID_POOL: Entry(_POOL, "{problem}", "correct this field of the pool", event="Warning"),
    Reason.NO_NODES: Entry(
        _POOL,
        "no node carries the labels of spec.nodeSelector",
        "correct spec.nodeSelector, or label the nodes",
        event="Warning",
    ),
    Reason.NODES_RELIABLE: Entry((ReasonPlace.POOL_NODES,), "no node of the pool keeps failing jobs", event="Normal"),
    Reason.NODE_AVOIDED: Entry(
        _FAILING,
        "{jobs} jobs failed on node {node} ({names}): it gets no job until {until}",
        _CLEAR,
        "The jobs failed on no other node. One job tries the node after that time. `failingNodes` of the "
        "SchedulingPolicy says how many failures count, and for how long.",
        "Warning",
    ),
    Reason.NODE_ON_TRIAL: Entry(
        _FAILING,
        "{jobs} jobs failed on node {node} ({names}): {trial}",
        _CLEAR,
        "The node takes one job. If that runs for `failingNodes.probeSeconds`, the node takes others again.",
        "Warning",
    ),
    Reason.NODE_FAILS_JOBS: Entry(
        _FAILING,
        "{jobs} jobs failed on node {node} ({names}), and it still gets jobs",
        "look for a cause that the nodes share, such as storage or network",
        "As many nodes of its GPU type as `failingNodes.maxPercent` allows are avoided already.",
        "Warning",
    ),
    Reason.AUTOSCALING_OFF: Entry(
        _GROWTH,
        "the pool has spec.autoscaling, but kube-synergy asks for no nodes",
        "set the chart's value autoscaling.enabled",
        event="Warning",
    ),
    Reason.NO_NODES_ASKED_FOR: Entry(_GROWTH, "no node is asked for"),
    Reason.NODES_ASKED_FOR: Entry(_GROWTH, "nodes are asked for: {nodes}", event="Normal"),
    Reason.NODES_NOT_PROVIDED: Entry(
        _GROWTH,
        "{nodes} nodes that were asked for did not come: {problem}. Failure {failures} in a row; no node is asked for "
        "before {until}",
        "look at the autoscaler's log, its node groups and your cloud's quota",
        event="Warning",
    ),
    Reason.REQUEST_REFUSED: Entry(
        _GROWTH,
        "the API server refuses the request for nodes: {problem}. No node is asked for before {until}",
        "install the autoscaler's CRD ProvisioningRequest, and give kube-synergy its rights (autoscaling.enabled)",
        event="Warning",
    ),
    Reason.TENANT_ESTABLISHED: Entry(
        (ReasonPlace.TENANT,), "{namespaces} namespaces belong to the tenant", event="Normal"
    ),
    Reason.INVALID_TENANT: Entry(
        (ReasonPlace.TENANT,),
        "{problem}",
        "correct this field of the Tenant",
        "No namespace belongs to the Tenant until then.",
        "Warning",
    ),
    Reason.NO_NAMESPACES: Entry(
        (ReasonPlace.TENANT,),
        "no namespace belongs to the tenant",
        "correct spec.namespaces or spec.namespaceSelector, or label the namespaces",
        "A tenant that only has children needs no namespace.",
        "Warning",
    ),
    Reason.PARENT_FOUND: Entry(_TREE, "the tenant is part of {parent}", event="Normal"),
    Reason.UNKNOWN_PARENT: Entry(
        _TREE,
        "spec.parent names {parent}, and there is no valid Tenant of that name",
        "correct spec.parent, or create the Tenant",
        "Plans take the tenant as a root until then: its guarantee and limit hold, and no parent's limit does.",
        "Warning",
    ),
    Reason.PARENT_CYCLE: Entry(
        _TREE,
        "spec.parent leads back to the tenant itself: {cycle}",
        "remove spec.parent from one of them",
        "Plans take each Tenant of the cycle as a root until then. Tenants below it keep their parents.",
        "Warning",
    ),
    Reason.TREE_TOO_DEEP: Entry(
        _TREE,
        "the tenant has more than {most} tenants above it",
        "give it a parent that is nearer to the root",
        "Plans take the tenant as a root until then.",
        "Warning",
    ),
    Reason.GUARANTEE_COVERED: Entry(_GUARANTEE, "plans keep the guarantee", event="Normal"),
    Reason.GUARANTEES_ABOVE_PARENT: Entry(
        _GUARANTEE,
        "the children of {parent} are guaranteed {asked} {type} together, and {parent} has {given}; plans guarantee "
        "this tenant {kept}",
        "lower spec.guarantee of the children, or raise that of {parent}",
        "Plans lower the children's guarantees in proportion.",
        "Warning",
    ),
    Reason.GUARANTEES_ABOVE_CLUSTER: Entry(
        _GUARANTEE,
        "all tenants are guaranteed {asked} {type} together, and the cluster has {given}; plans guarantee this tenant "
        "{kept}",
        "lower spec.guarantee of the tenants, or add nodes",
        "Plans lower guarantees in proportion while the cluster has too few GPUs, such as when nodes are not ready. "
        "They rise again with the nodes.",
        "Warning",
    ),
    Reason.GUARANTEE_ABOVE_LIMIT: Entry(
        _GUARANTEE,
        "the tenant would be guaranteed {asked} {type}, and its spec.limit allows {kept}",
        "lower the guarantees of its children, or raise spec.limit",
        event="Warning",
    ),
    Reason.IN_FORCE: Entry(_POLICY, "plans follow this policy", event="Normal"),
    Reason.INVALID_POLICY: Entry(
        _POLICY,
        "{problem}; the last valid policy stays in force",
        "correct this field",
        event="Warning",
    ),
    Reason.PRICE_MISSING: Entry(
        _POLICY,
        "spec.policy goes by cost, and GPUs of type {types} have no price; {instead} serves in its place",
        "set spec.pricePerHour of the GPUPool that selects their nodes",
        "The cost policies need the price of every GPU. All else that the policy says is in force.",
        "Warning",
    ),
    Reason.POLICY_IGNORED: Entry(
        _POLICY,
        "only the SchedulingPolicy named {default} is in force, this one is ignored",
        "write its spec into {default}, or delete it",
        event="Warning",
    ),
    Reason.POLICY_MISSING: Entry(
        (ReasonPlace.EVENT,),
        "there is no SchedulingPolicy {default}, plans follow the built-in one ({policy}, {mechanism}, rounds of "
        "{seconds} s)",
        "create a SchedulingPolicy named {default}",
        "Somebody deleted the policy that the chart had made, or the chart makes none (`schedulingPolicy.create`). "
        "The event stands on the name of the missing object.",
        "Warning",
    ),
    Reason.OLDER_SCHEMA: Entry(
        _POLICY,
        "the cluster's CustomResourceDefinitions are older than the extender, which leaves out {fields}",
        "upgrade them: kubectl apply --server-side --force-conflicts -f helm/kube-synergy/crds/",
        "All else goes on. The extender writes the fields as soon as the definitions declare them.",
        event="Warning",
    ),
    Reason.PROFILE_USED: Entry(
        _PROFILE,
        "jobs with this fingerprint use it",
    ),
    Reason.INVALID_PROFILE: Entry(
        _PROFILE, "{problem}, the profile is not used", "correct this field, or delete the profile", event="Warning"
    ),
    Reason.FINGERPRINT_DIFFERS: Entry(
        _PROFILE,
        "a profile is found by its name alone, and what this one holds is looked for as {name}: it is not used",
        "name the profile after its fingerprint and image digest",
        event="Warning",
    ),
}
