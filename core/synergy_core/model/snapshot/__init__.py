"""What the planner reads (Snapshot): frozen, without behaviour. `config` says how it plans, `answer` what it answers.

Units: GPUs are counted, CPU is in milli-CPU, memory in bytes, time in seconds, speed in training steps per second of
the whole job. All resources are integers. The field names are those of the JSON form (`snapshot_format`), which also
checks the constraints written here; a Snapshot that a program builds itself is trusted.
"""

from synergy_core.model.snapshot.allocation import Allocation, BesideReference, NodeShare, Shared
from synergy_core.model.snapshot.history import PastJob
from synergy_core.model.snapshot.job import UNKNOWN_SKEW, Job, Placement, Purpose
from synergy_core.model.snapshot.limits import (
    FASTEST,
    HEAVIEST,
    LIGHTEST,
    SLOWEST,
    Count,
    FieldError,
    Moment,
    Name,
    Part,
    Positive,
    Price,
    Rate,
    Seconds,
    Speed,
    Weight,
    check_speed,
)
from synergy_core.model.snapshot.node import Node
from synergy_core.model.snapshot.node_group import NodeGroup, Promise
from synergy_core.model.snapshot.profile import Profile
from synergy_core.model.snapshot.quota import Quota, QuotaDraw, QuotaLimit, merged_draws
from synergy_core.model.snapshot.snapshot import Snapshot
from synergy_core.model.snapshot.tenant import Tenant, check_tenants, tenant_problems

__all__ = [
    "FASTEST",
    "HEAVIEST",
    "LIGHTEST",
    "SLOWEST",
    "UNKNOWN_SKEW",
    "Allocation",
    "BesideReference",
    "Count",
    "FieldError",
    "Job",
    "Moment",
    "Name",
    "Node",
    "NodeGroup",
    "NodeShare",
    "Part",
    "PastJob",
    "Placement",
    "Positive",
    "Price",
    "Profile",
    "Promise",
    "Purpose",
    "Quota",
    "QuotaDraw",
    "QuotaLimit",
    "Rate",
    "Seconds",
    "Shared",
    "Snapshot",
    "Speed",
    "Tenant",
    "Weight",
    "check_speed",
    "check_tenants",
    "merged_draws",
    "tenant_problems",
]
