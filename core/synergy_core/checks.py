"""Checks of the options that need to know every policy and mechanism."""

from collections.abc import Iterable
from math import inf
from typing import get_args

from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import EstimateMode, PlanConfig
from synergy_core.model.names import not_there
from synergy_core.model.snapshot import FieldError
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import NAMES, WITH_PAIRS


def check(config: PlanConfig) -> None:
    """Raise FieldError where the options name a policy or mechanism that does not exist, or a value is out of range."""
    known: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("policy", config.policy, POLICIES),
        ("mechanism", config.mechanism, MECHANISMS),
        ("mode", config.mode, ("round", "fill")),
        ("estimate", config.estimate, get_args(EstimateMode)),
    )
    for name, value, choices in known:
        if value not in choices:
            raise FieldError(name, not_there(value, sorted(choices)))
    if config.colocation == "gavel" and config.policy not in WITH_PAIRS:
        problem = f"gavel shares by an allocation matrix, and {config.policy} has none with pairs; choose another mode"
        raise FieldError("colocation", f"{problem}, or a policy of {', '.join(sorted(WITH_PAIRS))}")
    if config.placement_sensitive and config.policy not in NAMES:
        problem = f"{config.policy} has no allocation matrix; leave it out, or choose a policy of {', '.join(NAMES)}"
        raise FieldError("placement_sensitive", problem)
    _check_numbers(config)


def _check_numbers(config: PlanConfig) -> None:
    if not 0 <= config.profile_gpu_percent <= 100:
        raise FieldError("profile_gpu_percent", f"must be from 0 to 100, is {config.profile_gpu_percent}")
    for name, least in (("minimum_run_s", config.minimum_run_s), ("preemption_payback", config.preemption_payback)):
        if not 0.0 <= least < inf:
            raise FieldError(name, f"must be at least 0 and finite, is {least}")
    if config.preemptions_per_hour is not None and config.preemptions_per_hour < 1:
        raise FieldError("preemptions_per_hour", f"must be at least 1, is {config.preemptions_per_hour}")
    for name, bound in (("pack_limit", config.pack_limit), ("max_price_per_hour", config.max_price_per_hour)):
        if bound is not None and not bound >= 0.0:
            raise FieldError(name, f"must be at least 0, is {bound}")
    if config.link_bytes_per_s is not None and not config.link_bytes_per_s > 0.0:
        raise FieldError("link_bytes_per_s", f"must be above 0, is {config.link_bytes_per_s}")
    if not 0.0 <= config.demand_tolerance < 1.0:
        raise FieldError("demand_tolerance", f"must be at least 0 and below 1, is {config.demand_tolerance}")
