"""Why a job waits: a closed list, each with a message that says the next step."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

NO_FACTS: Final[Mapping[str, str]] = MappingProxyType({})


class Reason(StrEnum):
    """Why a job is not running."""

    NO_FREE_GPU = "NoFreeGPU"
    YIELDED = "YieldedToOthers"
    HEAD_OF_LINE = "HeadOfLine"
    NO_FREE_NODE = "NoFreeNode"
    WOULD_BE_SPREAD = "WouldBeSpread"
    KEPT_FREE = "KeptForAPromotedJob"
    NO_FREE_CPU_OR_MEMORY = "NoFreeCPUOrMemory"
    NOT_WORTH_ITS_PRICE = "NotWorthItsPrice"
    PROFILE_SHARE_USED = "ProfileShareUsed"
    QUOTA_FULL = "QuotaFull"
    TENANT_LIMIT = "TenantLimit"
    BORROWING_LIMIT = "BorrowingLimit"
    GUARANTEES_FIRST = "GuaranteesFirst"
    GUARANTEE_AT_ROUND_END = "GuaranteeAtRoundEnd"
    GUARANTEE_WAITS_FOR_BUDGETS = "GuaranteeWaitsForBudgets"
    GUARANTEE_WAITS_FOR_RUNS = "GuaranteeWaitsForRuns"
    GUARANTEE_SCATTERED = "GuaranteeScattered"
    NODES_PROMISED = "NodesPromised"
    NO_SUCH_GPU_TYPE = "NoSuchGPUType"
    NO_ALLOWED_NODE = "NoAllowedNode"
    TOO_MANY_GPUS = "TooManyGPUs"
    TOO_MANY_GPUS_FOR_A_NODE = "TooManyGPUsForANode"
    MINIMUM_TOO_LARGE = "MinimumTooLarge"


MESSAGES: Final[dict[Reason, str]] = {
    Reason.NO_FREE_GPU: "needs {gpus} at once; jobs ahead of it hold them. It runs when enough are free or when "
    "its turn comes; fewer GPUs or more allowed GPU types bring it in earlier.",
    Reason.YIELDED: "jobs that are ahead of it now get its {gpus}. It checkpoints, keeps its progress and runs "
    "again when its turn comes.",
    Reason.HEAD_OF_LINE: "a job that came before it does not fit yet, and the policy lets nobody pass it. One "
    "that does, such as best-effort or las, brings it in earlier.",
    Reason.NO_FREE_NODE: "must be on one node, and no node has {gpus} free at once. It runs when one has; "
    "placement auto would let it run on several nodes.",
    Reason.WOULD_BE_SPREAD: "{gpus} are free, but on more nodes than it needs, and it is slow when spread: its "
    "largest tensor is {skew:.0%} of the model, or it was measured so. It runs when the fewest nodes have room; "
    "placement spread lets it run at once.",
    Reason.KEPT_FREE: "GPUs are free, but they are kept for a job that has waited too long, and this one could not be "
    "moved away again at once. It runs when that job has started; preemption other than Never brings it in earlier "
    "where no minimum run is asked for.",
    Reason.NO_FREE_CPU_OR_MEMORY: "GPUs are free, but not beside them the CPU or memory that it needs: others hold it, "
    "such as a profile run. It runs when a node has both; a lower minimum of CPU or memory brings it in earlier.",
    Reason.NOT_WORTH_ITS_PRICE: "GPUs are free, but the policy goes by cost, and its steps are cheaper on a type that "
    "is not. It runs when one of those is free; a deadline (with min-cost-slo) or another policy brings it in earlier.",
    Reason.PROFILE_SHARE_USED: "profile runs already hold their share of the cluster's GPUs. It is measured when one "
    "of them ends; a higher share for profile runs brings it in earlier.",
    Reason.QUOTA_FULL: "the quota {quota} allows {hard} of {resource} and has {left} left, and it needs {need}. It "
    "runs when enough is given back or the quota is raised; fewer GPUs, or a lower resources.max for CPU and memory, "
    "bring it in earlier.",
    Reason.TENANT_LIMIT: "tenant {tenant} may hold {limit} of the {gpu_type} GPUs and has {held}, and the job needs "
    "{need}. It runs when enough of the tenant's jobs have ended or yielded; fewer GPUs, more allowed GPU types or a "
    "higher limit bring it in earlier.",
    Reason.BORROWING_LIMIT: "tenant {tenant} is guaranteed {guarantee} of the {gpu_type} GPUs, may borrow {borrowing} "
    "beyond and has {held}, and the job needs {need}. It runs when enough of the tenant's jobs have ended or yielded; "
    "fewer GPUs, or a higher guarantee or borrowing limit, bring it in earlier.",
    Reason.GUARANTEES_FIRST: "tenant {tenant} is guaranteed {guarantee} of the {gpu_type} GPUs and has {held}, so the "
    "job's {need} would be borrowed, and {kept} are for other tenants' guarantees. It runs when these leave enough; a "
    "higher guarantee brings it in earlier.",
    Reason.GUARANTEE_AT_ROUND_END: "tenant {tenant} is guaranteed {guarantee} of the {gpu_type} GPUs and has {held}, "
    "so the job's {need} are guaranteed. They are lent: others give them back at the round's end. A shorter round "
    "brings it in earlier.",
    Reason.GUARANTEE_WAITS_FOR_BUDGETS: "tenant {tenant} is guaranteed {guarantee} of the {gpu_type} GPUs and has "
    "{held}, so the job's {need} are guaranteed. Jobs that have {kept} of them may not be preempted now, because "
    "preemption budgets are spent. Budgets hold a guarantee up for an hour at most; higher ones bring it in earlier.",
    Reason.GUARANTEE_WAITS_FOR_RUNS: "tenant {tenant} is guaranteed {guarantee} of the {gpu_type} GPUs and has {held}, "
    "so the job's {need} are guaranteed. Runs that have {kept} of them are not preempted now: they are within their "
    "minimum or payback, never preempted, or profile runs. It runs when these end; a shorter minimum run, or fewer "
    "jobs that are never preempted, bring it in earlier.",
    Reason.GUARANTEE_SCATTERED: "tenant {tenant} is guaranteed {guarantee} of the {gpu_type} GPUs and has {held}, so "
    "the job's {need} are guaranteed. It must be on one node, and on each node jobs that run by guarantees have too "
    "many GPUs. It runs when enough of these have ended on one node; placement auto would let it run on several nodes.",
    Reason.NODES_PROMISED: "the {gpus} that it needs are on {nodes} of {groups} that are asked for and not there yet. "
    "It runs when they are, or earlier where other jobs leave enough.",
    Reason.NO_SUCH_GPU_TYPE: "no node has a GPU of an allowed type ({types}). Allow a type that the cluster has, or "
    "add such nodes.",
    Reason.NO_ALLOWED_NODE: "no node that may take new jobs is open to it: all are cordoned or must soon be empty, "
    "excluded by its own node selection, have no CPU or memory left beside other pods, or share their GPUs and leave a "
    "client less GPU memory than it needs. Uncordon or add nodes, or widen the selection.",
    Reason.TOO_MANY_GPUS: "asks for {gpus} of one type, and the nodes open to it never have that many. Ask for "
    "fewer, allow more GPU types, or add nodes.",
    Reason.TOO_MANY_GPUS_FOR_A_NODE: "must be on one node, and no node open to it has {gpus}. Ask for fewer, or "
    "set placement to auto.",
    Reason.MINIMUM_TOO_LARGE: "asks for more CPU or memory at least than the nodes open to it have for its {gpus}. "
    "Lower the minimum, or add larger nodes.",
}


def gpus_in_words(number: int) -> str:
    """A number of GPUs for a message: `1 GPU`, `2 GPUs`."""
    return "1 GPU" if number == 1 else f"{number} GPUs"


NEVER: Final = frozenset(
    {
        Reason.NO_SUCH_GPU_TYPE,
        Reason.NO_ALLOWED_NODE,
        Reason.TOO_MANY_GPUS,
        Reason.TOO_MANY_GPUS_FOR_A_NODE,
        Reason.MINIMUM_TOO_LARGE,
    }
)
"""The job could not run if nothing else did: something must be changed."""
