"""What a whole cluster's plan shares between all GPU types, so that no part of it can be planned apart."""

from typing import Final

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.policies.classes import has_classes

POLICIES: Final = frozenset({"2d-gittins", "2d-las", "best-effort", "fifo", "las", "sf"})
"""Policies that order jobs by what they know of each job alone, whatever it runs on."""
MECHANISMS: Final = frozenset({"proportional", "tune"})
"""Mechanisms that pack each GPU type by itself."""


def indivisible(snapshot: Snapshot, config: PlanConfig) -> str:
    """Why the cluster must be planned as one; empty if parts of it can be planned apart."""
    types = {node.gpu_type for node in snapshot.nodes}
    if len(types) < 2:
        return "all nodes have one GPU type"
    if config.policy not in POLICIES:
        return f"the policy {config.policy} compares jobs with each other"
    if config.mechanism not in MECHANISMS:
        return f"the mechanism {config.mechanism} has an order of its own over all GPU types"
    if config.priorities_across and has_classes(snapshot.jobs):
        return "classes count across tenants"
    if any(node.replicas > 1 or node.client_thread_percent < 100 for node in snapshot.nodes):
        return "nodes with shared GPUs serve the jobs of all GPU types"
    return next((why for job in snapshot.jobs if (why := _why(job, config, types))), "")


def _why(job: Job, config: PlanConfig, types: set[str]) -> str:
    if job.purpose == "profile":
        return "profile runs share a part of all GPUs"
    if config.colocation != "none" and (job.sharing or (job.running is not None and job.running.partners)):
        return "jobs may share GPUs"
    if config.estimate != "none" and (job.profiles or job.measured) and _wants_estimates(job, config, types):
        return "speeds are estimated from other jobs"
    return ""


def _wants_estimates(job: Job, config: PlanConfig, types: set[str]) -> bool:
    if config.estimate == "named" and not job.gpu_types:
        return False
    allowed = types & set(job.gpu_types) if job.gpu_types else types
    return any(one not in job.profiles and one not in job.measured for one in allowed)
