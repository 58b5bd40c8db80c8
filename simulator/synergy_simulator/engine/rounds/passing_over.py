"""Which rounds a simulation may pass over, by its policy and options: those whose plan cannot change anything."""

from dataclasses import dataclass

from synergy_core.policies import BUILT_IN
from synergy_core.policies.ranking import shares_by_matrix
from synergy_core.policies.rounds.time_shares import BY_ISOLATED_TIME, NAMES
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.rounds.foreseen import ORDER_NEVER_CHANGES, SELECTS_BY_GPUS, SHARES_TIME


@dataclass(frozen=True, slots=True)
class PassingOver:
    """What holds for all rounds of one simulation."""

    order_never_changes: bool
    """Waiting jobs keep their order, whatever time passes."""
    moves_all_the_time: bool
    """Each round must be planned: jobs change their GPU types though all of them run, or may be displaced later, or
    the plan enters their progress."""
    waits_in_vain: bool
    """Jobs that wait now do so until one comes or ends. (Pairs that did badly are tried again some time.)"""
    can_foresee: bool
    """Which jobs the plan selects follows from their order and their GPUs alone."""
    keeps_amounts: bool
    """What a running job has follows from its nodes alone: as long as the same jobs run, a plan changes nothing."""

    @classmethod
    def of(cls, options: Options, *, several_types: bool) -> "PassingOver":
        """By the options, on a cluster with one GPU type or several."""
        config = options.plan
        by_gpus = (
            config.mechanism in SELECTS_BY_GPUS
            and config.policy in BUILT_IN
            and config.policy not in NAMES
            and not several_types
            and config.colocation == "none"
        )
        pauses = options.preemption_overhead_s > 0 or options.storage_bytes_per_s is not None
        settles_late = config.minimum_run_s > 0 or (config.preemption_payback > 0 and pauses)
        by_shares = shares_by_matrix(config) or (config.policy in SHARES_TIME and several_types)
        enters_progress = config.policy in BY_ISOLATED_TIME
        never_changes = config.policy in ORDER_NEVER_CHANGES and not by_shares
        return cls(
            order_never_changes=never_changes,
            moves_all_the_time=settles_late or by_shares or config.placement_sensitive or enters_progress,
            waits_in_vain=never_changes and config.colocation == "none",
            can_foresee=options.reuse_plans and by_gpus,
            keeps_amounts=by_gpus and config.mechanism == "proportional" and options.measured_types is None,
        )
