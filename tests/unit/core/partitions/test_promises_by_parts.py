"""The promises of every plan (`test_promises`) hold for plans that are made in parts."""

import importlib.util
from dataclasses import replace
from pathlib import Path

from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.partitions.by_parts import plan_by_parts
from synergy_core.partitions.shared import MECHANISMS, POLICIES
from synergy_core.plan import plan


def _by_parts(snapshot: Snapshot, config: PlanConfig) -> Plan:
    """In parts as often as can be: without estimates, and under a policy and a mechanism that have parts."""
    divisible = replace(
        config,
        estimate="none",
        policy=config.policy if config.policy in POLICIES else "2d-las",
        mechanism=config.mechanism if config.mechanism in MECHANISMS else "tune",
    )
    return plan_by_parts(snapshot, divisible, lambda parts, one: [plan(part, one) for part in parts])


def _promises() -> dict[str, object]:
    file = Path(__file__).parents[1] / "test_promises.py"
    spec = importlib.util.spec_from_file_location("promises_by_parts", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["plan"] = _by_parts
    return {name: one for name, one in vars(module).items() if name.startswith("test_")}


globals().update(_promises())
