"""Requests and answers of the API about the future: `POST what-if` and `GET jobs/{namespace}/{name}/help`."""

from pydantic.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfRequest:
    """Changes to try. Nothing on the cluster changes."""

    policy: str = ""
    mechanism: str = ""
    round_s: float = 0.0
    add_nodes: dict[str, int] | None = None
    """By pool, GPU type or the name of a node: how many like it come."""
    remove_nodes: list[str] | None = None
    drain_nodes: list[str] | None = None
    add_job: dict[str, object] | None = None
    """A TrainingJob manifest."""
    options: dict[str, str] | None = None
    """Further keys, as `kube-synergy what-if --set` takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Of one future."""

    avg_jct_s: float | None
    makespan_s: float | None
    gpu_utilization: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfJob:
    """Start and end as it is, and with the change."""

    job: str
    start_s: tuple[float | None, float | None]
    finish_s: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer:
    """Two futures side by side."""

    as_is: Totals
    what_if: Totals
    jobs: list[WhatIfJob]
    seconds: float


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change with which a waiting job starts in the next round (`synergy_view.remedies`)."""

    kind: str
    told: str
    gets: str
    step: str


@dataclass(frozen=True, slots=True)
class HelpAnswer:
    """`GET jobs/{namespace}/{name}/help`: what was tried and works."""

    planned: bool
    """Whether plans consider the job: not while it runs, is suspended, profiled or has a problem."""
    starts_anyway: bool
    remedies: list[Remedy]
    complete: bool
    """False: the time ended before all changes had been tried."""
