"""The past in a snapshot: the jobs that arrived before it, and how their models train."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from synergy_core.model.snapshot.limits import STRICT, Moment, Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class PastJob:
    """A job that has arrived, whether it has ended or not. Forecasts draw future arrivals from these."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    arrival_s: Moment
    gpus: Positive
    model: str = ""
    """What it trains; empty: not known."""
    steps: Annotated[float, Field(gt=0)] | None = None
    """All its training steps; null: not known."""
    finish_s: Moment | None = None
    """When it ended; null while it waits or runs."""
