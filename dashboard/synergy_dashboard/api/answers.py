"""The answers of the API, `/api/v1`. The page and `kubectl synergy` read them.

| request | answer |
|---|---|
| `GET me` | `Me` |
| `GET cluster` | `ClusterPage` |
| `GET queue` | `QueuePage` |
| `GET rounds?until_s=&rounds=` | `RoundsPage` |
| `GET jobs/{namespace}/{name}` | `JobPage` |
| `GET tenants?since_s=` | `TenantsPage` |
| `POST what-if` with `future_answers.WhatIfRequest` | `future_answers.WhatIfAnswer` |
| `GET jobs/{namespace}/{name}/history` | `synergy_view.history.History` |
| `GET decisions?rounds=&namespace=` | `DecisionsPage` |
| `GET usage?since_s=&namespace=` | `UsagePage` |
| `GET export?since_s=&namespace=` | a zip file with `trace.csv`, `profiles.json`, `cluster.yaml` and `notes.txt` |
| `GET stream` | server-sent events; each `change` event has a `Change` |

Errors are `{"error": "..."}` with 401 (no or a wrong token), 403 (not allowed), 404, 422, 429 (ask for less at once) or
503. All times are in seconds since the epoch, CPU in milli-CPU, memory in bytes, speeds in steps per second of the
whole job.
"""

from pydantic.dataclasses import dataclass

from synergy_dashboard.facts import ResizeFact, RunFact, Sample, Usage, UseSample, WaitFact
from synergy_view.history import Happening
from synergy_view.queue import QueueRow
from synergy_view.rounds import Round as DecidedRound
from synergy_view.surface import Surface
from synergy_view.top import JobRow, NodeRow, TenantRow, TypeRow
from synergy_view.usage import UsageRow
from synergy_view.why import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who asks, and what they may see."""

    user: str
    everything: bool
    """Whether the user may get TrainingJobs of all namespaces."""
    namespaces: list[str]
    """Those in which the user may get TrainingJobs, of the namespaces that have any."""
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The policy in force: `spec` is that of the SchedulingPolicy, without what was not set."""

    name: str
    mechanism: str
    round_s: float
    round_ends_s: float | None
    spec: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """A forecast time. None if it is beyond the horizon."""

    p10: float | None
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When a job runs next and ends. `unknown` says why nothing is known: NoSteps, NotProfiled or NeverFits."""

    start_s: Quantiles
    finish_s: Quantiles
    unknown: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPage:
    """Who has what, and how it was lately. Jobs in namespaces that the user may not see are `hidden` as a number;
    their GPUs count in `types` and `nodes`, their names do not appear."""

    now: float
    policy: Policy | None
    types: list[TypeRow]
    nodes: list[NodeRow]
    jobs: list[JobRow]
    tenants: list[TenantRow]
    waiting: int
    waiting_by_reason: dict[str, int]
    hidden: int
    use: list[UseSample]
    recorded_since_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """The waiting jobs in order. `forecasts` are by NAMESPACE/NAME; absent where there is none yet."""

    now: float
    rows: list[QueueRow]
    forecasts: dict[str, Forecast]
    hidden: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run on the Gantt chart: one bar for each node that it held."""

    job: str
    tenant: str
    run: int
    purpose: str
    gpu_type: str
    node: str
    gpus: int
    start_s: float
    end_s: float | None
    """None while it holds the GPUs."""
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A job that left in a round, and why."""

    job: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What changed from one round's start to the next."""

    start_s: float
    end_s: float
    came: list[str]
    left: list[Departure]
    resized: list[str]
    gpus_given: int
    """Mean over the round, rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsPage:
    """The Gantt chart and the rounds in it, the newest first."""

    now: float
    since_s: float
    until_s: float
    round_s: float
    segments: list[Segment]
    rounds: list[Round]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """All about one job. `why` and `surfaces` are None and empty for a job that was deleted."""

    now: float
    namespace: str
    job: str
    tenant: str
    phase: str
    gpus: int
    gpu_types: list[str]
    steps: int
    steps_done: int
    metrics: dict[str, float]
    """What the script reported last, by name."""
    steps_per_s: float
    created_s: float
    finished_s: float | None
    preemptions: int
    failures: int
    why: Why | None
    forecast: Forecast | None
    surfaces: list[Surface]
    runs: list[RunFact]
    waits: list[WaitFact]
    resizes: list[ResizeFact]
    samples: list[Sample]
    events: list[Happening]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPage:
    """One tenant, now (`row`) and in the time asked for (`usage`, a row for each namespace)."""

    row: TenantRow
    usage: list[Usage]
    never_preempted_gpus: int | None
    """The cap of its Tenant on GPUs of jobs that are never preempted; None without one."""
    max_weight: float | None
    guaranteed: str = ""
    """GPUs that plans guarantee its Tenant, such as `8 A100, 4 V100`; empty without one."""
    borrowed: str = ""
    """GPUs that it and the tenants below it use beyond that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsPage:
    """All tenants that the user may see."""

    now: float
    since_s: float
    tenants: list[TenantPage]
    hidden: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionsPage:
    """Rounds in which something was decided, the newest first."""

    now: float
    recorded_since_s: float | None
    rounds: list[DecidedRound]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """What tenants had of the cluster from `since_s` on, as far as the history goes back; the most first."""

    now: float
    since_s: float
    recorded_since_s: float | None
    rows: list[UsageRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed since the event before, by name; None where a row went. A job that starts leaves `queue` and enters
    `jobs`. `types`, `tenants`, `waiting_by_reason` and `policy` are whole, and None where nothing in them changed."""

    now: float
    jobs: dict[str, JobRow | None]
    queue: dict[str, QueueRow | None]
    nodes: dict[str, NodeRow | None]
    types: list[TypeRow] | None
    tenants: list[TenantRow] | None
    waiting_by_reason: dict[str, int] | None
    round_ends_s: float | None
    policy: Policy | None = None
