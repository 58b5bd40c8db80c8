"""The options of the simulation of a snapshot's future, from its `config`."""

from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from synergy_core.model.config import PlanConfig
from synergy_core.model.config.format import config_of_document, split_config
from synergy_core.model.snapshot import FieldError, Snapshot
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.sharing.truth import Truth

_TYPES: Final[dict[str, Any]] = {
    "start_overhead_s": float,
    "preemption_overhead_s": float,
    "storage_bytes_per_s": float | None,
    "profiling_s": float,
    "fill": bool,
}


def options_of_snapshot(snapshot: Snapshot, base: PlanConfig | None = None) -> Options:
    """The options of a forecast, from the planner's and simulator's keys in the snapshot's `config`. Jobs that share a
    GPU get the speed that the planner predicts. Raises FieldError naming the key of `config` that is unknown or out of
    range."""
    planned, simulated = split_config(snapshot.config)
    plan = config_of_document(planned, PlanConfig(explain=False) if base is None else base)
    values = {name: _checked(name, value) for name, value in simulated.items()}
    return Options(plan=plan, tenants=snapshot.tenants, round_s=snapshot.round_s, truth=Truth(deviation=0.0), **values)


def _checked(name: str, value: Any) -> Any:
    try:
        found = TypeAdapter(_TYPES[name]).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise FieldError(f"config.{name}", f"{problem[0].lower()}{problem[1:]}, is {value!r}") from None
    if isinstance(found, float) and not 0 <= found < float("inf"):
        raise FieldError(f"config.{name}", f"must be at least 0 and finite, is {value!r}")
    return found
