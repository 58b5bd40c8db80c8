"""The answers of the dashboard's API about a made-up cluster."""

import math
import random

from support.dashboard_world import GIB, TYPES, World
from synergy_dashboard.api import answers
from synergy_dashboard.facts import ResizeFact, RunFact, Sample, Share, Usage, UseSample, WaitFact
from synergy_view.history import Happening
from synergy_view.surface import Surface
from synergy_view.why import Holder, Why

ROUND_S = 300.0


def policy(world: World) -> answers.Policy:
    """The policy in force."""
    spec: dict[str, object] = {
        "policy": "max-min-fairness",
        "mechanism": "tune",
        "roundSeconds": 300,
        "colocation": "auto",
        "tenants": [{"name": "vision", "weight": 2.0}, {"name": "research", "weight": 1.0, "policy": "fifo"}],
        "profiling": {"maxGpuPercent": 10, "maxPoints": 8},
    }
    ends = (world.now // ROUND_S + 1) * ROUND_S
    return answers.Policy(name="default", mechanism="tune", round_s=ROUND_S, round_ends_s=ends, spec=spec)


def cluster(world: World, hidden: int = 0) -> answers.ClusterPage:
    """`GET cluster`."""
    use = [
        UseSample(
            at_s=world.now - 86_400 + 720 * place,
            gpu_type=row.gpu_type,
            gpus=row.gpus,
            gpus_given=min(row.gpus, int(row.gpus * (0.72 + 0.22 * math.sin(place / 11) + 0.04 * math.sin(place)))),
            gpus_wanted=max(0, int(row.gpus * 0.5 * math.sin(place / 17 + 1))),
            waiting=max(0, int(24 * math.sin(place / 17 + 1))),
        )
        for place in range(121)
        for row in world.types()
    ]
    return answers.ClusterPage(
        now=world.now,
        policy=policy(world),
        types=world.types(),
        nodes=list(world.nodes.values()),
        jobs=sorted(world.jobs.values(), key=lambda row: (-row.gpus, row.job)),
        tenants=world.tenants(),
        waiting=len(world.queue),
        waiting_by_reason=world.reasons(),
        hidden=hidden,
        use=use,
        recorded_since_s=world.now - 40 * 86_400,
    )


def forecast(world: World, seed: int) -> answers.Forecast:
    """Some times from now on."""
    draw = random.Random(seed)
    if seed % 9 == 8:
        none = answers.Quantiles(p10=None, p50=None, p90=None)
        return answers.Forecast(start_s=none, finish_s=none, unknown=("NotProfiled", "NoSteps", "NeverFits")[seed % 3])
    start = world.now + draw.expovariate(1 / 4000)
    end = start + draw.uniform(2000, 90_000)
    return answers.Forecast(
        start_s=answers.Quantiles(p10=start - 0.6 * (start - world.now), p50=start, p90=start + 1800),
        finish_s=answers.Quantiles(p10=end - 1500, p50=end, p90=None if seed % 7 == 6 else end + 6000),
        unknown=None,
    )


def queue(world: World, hidden: int = 0) -> answers.QueuePage:
    """`GET queue`."""
    rows = sorted(world.queue.values(), key=lambda row: (row.position is None, row.position or 0, -row.waiting_s))
    forecasts = {f"{row.namespace}/{row.job}": forecast(world, place) for place, row in enumerate(rows)}
    return answers.QueuePage(now=world.now, rows=rows, forecasts=forecasts, hidden=hidden)


def rounds(world: World, until_s: float | None, many: int) -> answers.RoundsPage:
    """`GET rounds`: the jobs that run now ran before as well, with others before them."""
    until = min(until_s or world.now, world.now)
    since = (until // ROUND_S - many) * ROUND_S
    segments: list[answers.Segment] = []
    changes: dict[float, list[tuple[str, str]]] = {}
    names = sorted(world.tenant_of)
    for place, (job, shares) in enumerate(sorted(world.shares.items())):
        draw = random.Random(f"{job} {int(since // 86_400)}")
        began = since + ROUND_S * draw.randrange(many)
        before = names[(place * 7) % len(names)]
        changes.setdefault(began, []).append((job, before))
        for node, gpus in shares.items():
            common = {"node": node, "gpus": gpus, "gpu_type": world.nodes[node].gpu_type, "purpose": "Train", "run": 2}
            running = world.now - until < ROUND_S
            segments.append(
                answers.Segment(
                    **common,  # type: ignore[arg-type]
                    job=job,
                    tenant=world.tenant_of[job],
                    start_s=began,
                    end_s=None if running else until,
                    outcome="",
                    reason="",
                )
            )
            if began - since > ROUND_S:
                segments.append(
                    answers.Segment(
                        **common,  # type: ignore[arg-type]
                        job=before,
                        tenant=world.tenant_of[before],
                        start_s=since - 600,
                        end_s=began - 12,
                        outcome="Yielded",
                        reason=f"preempted for {job}, which has had less than its share",
                    )
                )
    told = [
        answers.Round(
            start_s=start,
            end_s=start + ROUND_S,
            came=[came for came, _ in changes.get(start, [])],
            left=[
                answers.Departure(
                    job=left, outcome="Yielded", reason=f"preempted for {came}, which has had less than its share"
                )
                for came, left in changes.get(start, [])
            ],
            resized=[came for came, _ in changes.get(start - ROUND_S, [])[:2]],
            gpus_given=sum(job.gpus for job in world.jobs.values()) - 3,
        )
        for start in (since + ROUND_S * one for one in reversed(range(many)))
    ]
    return answers.RoundsPage(
        now=world.now, since_s=since, until_s=until, round_s=ROUND_S, segments=segments, rounds=told
    )


def surface(gpu_type: str, gpus: int, given: tuple[int, int] | None) -> Surface:
    """Speed that rises with CPU and memory and levels off."""
    node_gpus, cpu, memory = TYPES[gpu_type]
    cpu_points = tuple(int(cpu / node_gpus * gpus * factor) for factor in (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5))
    memory_points = tuple(int(memory * GIB / node_gpus * gpus * factor) for factor in (0.25, 0.5, 0.75, 1, 1.5, 2))
    speeds = tuple(
        tuple(round(22 * min(1, 0.18 + c / 9) * min(1, 0.55 + m / 8), 3) for m in range(len(memory_points)))
        for c in range(len(cpu_points))
    )
    return Surface(
        gpu_type=gpu_type,
        cpu_millis=cpu_points,
        memory_bytes=memory_points,
        steps_per_s=speeds,
        demand=(cpu_points[6], memory_points[3]),
        given=given,
        confidence="High",
        uncertainty=0.042,
        runs=6,
        measured=cpu_points[::2],
    )


def _why(world: World, full: str) -> Why:
    row = world.queue.get(full)
    if row is None:
        job = world.jobs[full]
        place = f"it runs on {job.gpus} {job.gpu_type} GPUs of {job.nodes} node(s), {job.steps_per_s} steps/s"
        notes = ("DeadlineAtRisk: at this speed it ends 40m after its deadline",) if job.gpus > 4 else ()
        return Why(job=full, phase="Running", reason="Running", message=place, notes=notes)
    ahead = tuple(
        name for name, one in world.queue.items() if one.position is not None and one.position < (row.position or 0)
    )
    holders = [Holder(job.job, job.gpus, job.gpu_type, world.tenant_of[job.job]) for job in world.jobs.values()]
    return Why(
        job=full,
        phase="Queued" if row.position is not None else "Profiling",
        reason=row.reason,
        message=row.message,
        explanation="The job is planned as soon as enough GPUs of a type that it may use are free.",
        next_step=f"kubectl synergy when {row.job} -n {row.namespace}",
        position=row.position,
        ahead=ahead,
        holders=tuple(sorted(holders, key=lambda one: -one.gpus)),
    )


def job(world: World, namespace: str, name: str) -> answers.JobPage | None:
    """`GET jobs/{namespace}/{name}`."""
    full = f"{namespace}/{name}"
    running, waiting = world.jobs.get(full), world.queue.get(full)
    if running is None and waiting is None:
        return None
    now, draw = world.now, random.Random(full)
    held = world.shares.get(full, {})
    some = held or {next(iter(world.nodes)): 1}
    gpu_type = world.nodes[next(iter(some))].gpu_type
    gpus = running.gpus if running is not None else waiting.gpus if waiting is not None else 1
    per_gpu = TYPES[gpu_type][1] // TYPES[gpu_type][0]
    memory = TYPES[gpu_type][2] * GIB // TYPES[gpu_type][0]
    shares = tuple(
        Share(node=node, gpus=many, cpu_millis=int(1.4 * many * per_gpu), memory_bytes=int(1.2 * many * memory))
        for node, many in some.items()
    )
    common = {"uid": "u1", "purpose": "Train", "gpu_type": gpu_type, "gpus": gpus, "shares": shares}
    speeds = {"steps_per_s": 18.4, "proportional_steps_per_s": 12.9}
    other = next((one for one in world.jobs if one != full), "research/other")
    runs = [
        RunFact(
            **{**common, "purpose": "Profile"},
            run=1,
            granted_s=now - 30_000,
            started_s=now - 29_970,  # type: ignore[arg-type]
            ended_s=now - 29_000,
            outcome="Profiled",
            reason="2 CPU points measured",
        ),  # fmt: skip
        RunFact(
            **common,
            **speeds,
            run=2,
            granted_s=now - 26_000,
            started_s=now - 25_940,
            revoked_s=now - 15_020,  # type: ignore[arg-type]
            revoked_reason=f"for {other}: it has had 0.4 of its share, this job 1.6",
            ended_s=now - 15_000,
            outcome="Yielded",
            reason="it wrote a checkpoint and left",
        ),  # fmt: skip
    ]
    if running is not None:
        runs.append(
            RunFact(**common, **speeds, run=3, granted_s=now - 9000, started_s=now - 8950, partners=running.partners)
        )  # type: ignore[arg-type]
    samples = [
        Sample(
            uid="u1",
            at_s=now - 9000 + 60 * place,
            steps=1100 * place,
            steps_per_s=round(18.4 + 2 * math.sin(place / 6) + draw.uniform(-0.5, 0.5) - (5 if place < 50 else 0), 2),
            cpu_millis=int((1.0 if place < 50 else 1.4) * gpus * per_gpu),
            memory_bytes=int((1.0 if place < 50 else 1.2) * gpus * memory),
        )
        for place in range(150)
    ] if running is not None else []  # fmt: skip
    given = (sum(one.cpu_millis for one in shares), sum(one.memory_bytes for one in shares)) if held else None
    waits = [
        WaitFact(uid="u1", since_s=now - 32_000, until_s=now - 30_000, reason="WaitingForProfile", message="its profile runs wait", position=None),
        WaitFact(uid="u1", since_s=now - 15_000, until_s=now - 9000 if running else None, reason="WaitingForRoom",
                 message="8 GPUs are wanted, 3 are free", position=4),
    ]  # fmt: skip
    events = [
        Happening(now - 32_000, "Created", "the TrainingJob was created"),
        Happening(now - 25_940, "FirstStart", "the job ran for the first time"),
        Happening(now - 15_020, "Revoked", f"run 2 leaves for {other}"),
        Happening(now - 9000, "Planned", f"run 3 is planned on {', '.join(some)}"),
    ]
    resize = ResizeFact(uid="u1", run=3, at_s=now - 6000, shares=shares)
    steps, done = (
        (running.steps, running.steps_done) if running else (waiting.steps, waiting.steps_done) if waiting else (0, 0)
    )
    return answers.JobPage(
        now=now, namespace=namespace, job=name, tenant=world.tenant_of[full], phase=_why(world, full).phase, gpus=gpus,
        gpu_types=list(waiting.gpu_types) if waiting else [gpu_type, "V100" if gpu_type != "V100" else "T4"], steps=steps, steps_done=done,
        steps_per_s=running.steps_per_s if running else 0.0, created_s=now - 32_000, finished_s=None, preemptions=1, failures=0,
        why=_why(world, full), forecast=forecast(world, len(full)), surfaces=[surface(gpu_type, gpus, given), surface("V100" if gpu_type != "V100" else "T4", gpus, None)],
        runs=runs, waits=waits, resizes=[resize] if running else [], samples=samples, events=events,
    )  # fmt: skip


def tenants(world: World, since_s: float) -> answers.TenantsPage:
    """`GET tenants`."""
    hours = (world.now - since_s) / 3600
    pages = [
        answers.TenantPage(
            row=row,
            usage=[
                Usage(
                    tenant=row.tenant,
                    namespace=namespace,
                    gpu_hours=row.gpus_given * hours * part,
                    waiting_hours=row.waiting * 3.1 * part,
                    gained_gpu_hours=row.gpus_given * hours * part * 0.19,
                    runs=int(row.running * 4 * part) + 1,
                    preemptions=int(row.running * part),
                )
                for namespace, part in ((row.tenant, 0.8), (f"{row.tenant}-dev", 0.2))
            ],
            never_preempted_gpus=16 if row.tenant in ("vision", "speech") else None,
            max_weight=4.0 if row.tenant == "vision" else None,
        )
        for row in world.tenants()
    ]
    return answers.TenantsPage(now=world.now, since_s=since_s, tenants=pages, hidden=0)


def what_if(world: World, asked: answers.WhatIfRequest) -> answers.WhatIfAnswer:
    """`POST what-if`: sooner with more nodes, later with fewer."""
    more = sum((asked.add_nodes or {}).values()) - len(asked.remove_nodes or ()) - len(asked.drain_nodes or ())
    factor = 1 - 0.06 * more - (0.04 if asked.policy else 0) + (0.03 if asked.add_job else 0)
    jobs = []
    for place, row in enumerate(sorted(world.queue.values(), key=lambda one: one.position or 10**6)):
        start, end = world.now + 400 * place, world.now + 400 * place + 8000
        moved = world.now + 400 * place * factor
        jobs.append(
            answers.WhatIfJob(
                job=f"{row.namespace}/{row.job}",
                start_s=(start, moved),
                finish_s=(end, None if place % 11 == 10 else moved + 8000 * factor),
            )
        )
    if asked.add_job is not None:
        end = world.now + 26_000
        jobs.append(answers.WhatIfJob(job="vision/added", start_s=(None, world.now + 900), finish_s=(None, end)))
    return answers.WhatIfAnswer(
        as_is=answers.Totals(avg_jct_s=41_000, makespan_s=190_000, gpu_utilization=0.87),
        what_if=answers.Totals(avg_jct_s=41_000 * factor, makespan_s=190_000 * factor, gpu_utilization=0.84),
        jobs=jobs,
        seconds=1.84,
    )
