"""The answers of the dashboard's API about a made-up cluster."""

import math
import random
from dataclasses import replace

from support.dashboard.world import World
from synergy_dashboard.api import answers, future_answers
from synergy_dashboard.facts import Usage, UseSample

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
    return answers.Policy(name="2d-las", mechanism="tune", round_s=ROUND_S, round_ends_s=ends, spec=spec)


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
            running = world.now - until < ROUND_S
            newest = answers.Segment(
                job=job,
                tenant=world.tenant_of[job],
                run=2,
                purpose="Train",
                gpu_type=world.nodes[node].gpu_type,
                node=node,
                gpus=gpus,
                start_s=began,
                end_s=None if running else until,
                outcome="",
                reason="",
            )
            segments.append(newest)
            if began - since > ROUND_S:
                reason = f"preempted for {job}, which has had less than its share"
                segments.append(
                    replace(newest, job=before, start_s=since - 600, end_s=began - 12, outcome="Yielded", reason=reason)
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
            guaranteed="32 A100, 16 V100" if row.tenant == "vision" else "",
            borrowed="8 A100" if row.tenant == "vision" else "",
        )
        for row in world.tenants()
    ]
    return answers.TenantsPage(now=world.now, since_s=since_s, tenants=pages, hidden=0)


def helped(namespace: str, name: str) -> future_answers.HelpAnswer:
    """`GET jobs/NAMESPACE/NAME/help`: another type helps, and a node more."""
    step = f'kubectl patch trainingjob {name} -n {namespace} --type merge -p \'{{"spec":{{"gpuTypes":[]}}}}\''
    other = future_answers.Remedy(
        kind="gpuTypes", told="allow T4 too", gets="4 T4 GPUs on 1 node, 32 CPU, 240Gi", step=step
    )
    more = future_answers.Remedy(
        kind="node", told="one node more with 8 A100 GPUs", gets="4 A100 GPUs on 1 node, 48 CPU, 480Gi", step=""
    )
    return future_answers.HelpAnswer(planned=True, starts_anyway=False, remedies=[other, more], complete=False)


def what_if(world: World, asked: future_answers.WhatIfRequest) -> future_answers.WhatIfAnswer:
    """`POST what-if`: sooner with more nodes, later with fewer."""
    more = sum((asked.add_nodes or {}).values()) - len(asked.remove_nodes or ()) - len(asked.drain_nodes or ())
    factor = 1 - 0.06 * more - (0.04 if asked.policy else 0) + (0.03 if asked.add_job else 0)
    jobs = []
    for place, row in enumerate(sorted(world.queue.values(), key=lambda one: one.position or 10**6)):
        start, end = world.now + 400 * place, world.now + 400 * place + 8000
        moved = world.now + 400 * place * factor
        jobs.append(
            future_answers.WhatIfJob(
                job=f"{row.namespace}/{row.job}",
                start_s=(start, moved),
                finish_s=(end, None if place % 11 == 10 else moved + 8000 * factor),
            )
        )
    if asked.add_job is not None:
        end = world.now + 26_000
        jobs.append(future_answers.WhatIfJob(job="vision/added", start_s=(None, world.now + 900), finish_s=(None, end)))
    return future_answers.WhatIfAnswer(
        as_is=future_answers.Totals(avg_jct_s=41_000, makespan_s=190_000, gpu_utilization=0.87),
        what_if=future_answers.Totals(avg_jct_s=41_000 * factor, makespan_s=190_000 * factor, gpu_utilization=0.84),
        jobs=jobs,
        seconds=1.84,
    )
