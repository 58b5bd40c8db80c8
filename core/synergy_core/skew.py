"""Which jobs are to lie close together (Tiresias, section 3.3).

A job whose model has one tensor that outweighs the rest is slowed down by the network when its workers lie on many
nodes; others are not (section 2.2, figure 3, table 6). The skew of a job is its largest tensor's part of the model's
bytes. Above a threshold, PACKLIMIT, the job waits for the fewest nodes that could hold it. Below, it takes GPUs that
are left over, which keeps whole nodes free for those that need them. A job whose speeds on few and on many nodes have
been measured goes by these instead.
"""

from synergy_core.model import Job, Placement

WORTH_PACKING = 0.95
"""A job that keeps this part of its speed when spread need not wait for few nodes."""


def placement_of(job: Job, pack_limit: float | None) -> Placement:
    """How the job's GPUs are to lie: as it says itself; where it leaves that open, by what it is sensitive to.

    Without a `pack_limit` nothing is known of any job, and `auto` stays what it is.
    """
    if job.placement != "auto" or job.gpus == 1 or job.purpose == "profile" or pack_limit is None:
        return job.placement
    return "pack" if is_sensitive(job, pack_limit) else "spread"


def is_sensitive(job: Job, pack_limit: float) -> bool:
    """Whether the job is slower on many nodes: measured where it has been, else guessed by its skew."""
    if job.spread_speed is not None:
        return job.spread_speed < WORTH_PACKING
    return job.skew > pack_limit
