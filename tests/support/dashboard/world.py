"""A cluster made up for the dashboard's page: who runs where, who waits and what for, from a seed."""

import random
from dataclasses import dataclass, field, replace

from synergy_view.queue import QueueRow
from synergy_view.top import JobRow, NodeRow, TenantRow, TypeRow

GIB = 1 << 30
TENANTS = ("vision", "speech", "language", "research", "robotics", "platform")
MODELS = (
    "resnet50",
    "bert-large",
    "gpt-small",
    "whisper",
    "yolo",
    "dlrm",
    "vit-base",
    "deepspeech",
    "t5",
    "a3c",
    "lstm",
    "unet",
)
TYPES = {"A100": (8, 96_000, 1024), "V100": (8, 40_000, 512), "T4": (8, 64_000, 384)}
"""GPUs, milli-CPU and GiB of a node of each type."""
REASONS = (
    ("WaitingForRoom", "{gpus} {types} GPUs are wanted, 3 are free: 5 jobs higher in the queue come first", 12),
    ("WaitingForProfile", "its profile is being measured, 2 points so far", 4),
    ("TenantCapped", "tenant {tenant} has 48 of 48 GPUs that it may hold", 3),
    ("WaitingForPlan", "the job came after the last plan; the next one is made within seconds", 2),
    ("NoGPUNodes", "no node has a GPU of the types that the job allows", 1),
)


@dataclass
class World:
    """What the API answers from. Times are in seconds since the epoch."""

    now: float
    nodes: dict[str, NodeRow] = field(default_factory=dict)
    jobs: dict[str, JobRow] = field(default_factory=dict)
    queue: dict[str, QueueRow] = field(default_factory=dict)
    tenant_of: dict[str, str] = field(default_factory=dict)
    shares: dict[str, dict[str, int]] = field(default_factory=dict)
    """GPUs of each job by node."""
    free: dict[str, int] = field(default_factory=dict)
    """Free GPUs by node."""

    def types(self) -> list[TypeRow]:
        """By name."""
        rows = []
        for name in TYPES:
            nodes = [node for node in self.nodes.values() if node.gpu_type == name]
            given = sum(job.gpus for job in self.jobs.values() if job.gpu_type == name)
            wanted = sum(row.gpus for row in self.queue.values() if not row.gpu_types or name in row.gpu_types)
            gpus = sum(node.gpus for node in nodes)
            rows.append(TypeRow(gpu_type=name, nodes=len(nodes), gpus=gpus, gpus_given=given, gpus_wanted=wanted))
        return [row for row in rows if row.nodes]

    def tenants(self) -> list[TenantRow]:
        """By name."""
        rows = []
        for tenant in sorted(TENANTS):
            running = [job for name, job in self.jobs.items() if self.tenant_of[name] == tenant]
            waiting = [row for name, row in self.queue.items() if self.tenant_of[name] == tenant]
            given = sum(job.gpus for job in running)
            rows.append(
                TenantRow(
                    tenant=tenant,
                    running=len(running),
                    waiting=len(waiting),
                    gpus_given=given,
                    gpus_wanted=sum(row.gpus for row in waiting),
                    gpu_hours=given * 31.5 + 12,
                )
            )
        return rows

    def reasons(self) -> dict[str, int]:
        """How many jobs wait for which reason."""
        found: dict[str, int] = {}
        for row in self.queue.values():
            found[row.reason] = found.get(row.reason, 0) + 1
        return found


def make_world(nodes: int, jobs: int, now: float, seed: int = 1) -> World:
    """A cluster of that size. As many of the jobs run as find GPUs; the others wait."""
    draw = random.Random(seed)
    world = World(now)
    sizes = {"A100": nodes // 2, "V100": nodes // 4}
    sizes["T4"] = nodes - sum(sizes.values())
    for gpu_type, many in sizes.items():
        gpus, cpu, memory = TYPES[gpu_type]
        for number in range(many):
            name = f"{gpu_type.lower()}-{number:03}"
            world.nodes[name] = NodeRow(
                node=name,
                gpu_type=gpu_type,
                gpus=gpus,
                gpus_given=0,
                cpu_millis=cpu,
                cpu_millis_given=0,
                memory_bytes=memory * GIB,
                memory_bytes_given=0,
                open_to_new=number % 17 != 11,
                jobs=(),
            )
    world.free = {name: node.gpus for name, node in world.nodes.items()}
    # larger clusters run smaller jobs, so that thousands run
    weights = (4, 4, 5, 6, 2, 1) if nodes < 200 else (10, 5, 3, 1, 0, 0)
    for number in range(jobs):
        tenant = draw.choice(TENANTS)
        name = f"{tenant}/{draw.choice(MODELS)}-{number:04}"
        world.tenant_of[name] = tenant
        gpus = draw.choices((1, 2, 4, 8, 16, 32), weights)[0]
        gpu_type = draw.choice(("A100", "A100", "V100", "T4"))
        if not (number % 6 == 5 and nodes >= 200) and _run(world, draw, name, gpus, gpu_type):
            continue
        _wait(world, draw, name, gpus, gpu_type)
    _share(world, draw)
    return world


def _run(world: World, draw: random.Random, name: str, gpus: int, gpu_type: str) -> bool:
    free = world.free
    shares: dict[str, int] = {}
    candidates = [
        node for node in world.nodes.values() if node.gpu_type == gpu_type and free[node.node] and node.open_to_new
    ]
    candidates.sort(key=lambda node: (free[node.node] < gpus, free[node.node]))
    for node in candidates:
        take = min(gpus - sum(shares.values()), free[node.node])
        if take:
            shares[node.node] = take
    if sum(shares.values()) < gpus or len(shares) > 4:
        return False
    for node_name, take in shares.items():
        free[node_name] -= take
        _hold(world, name, node_name, take, draw.uniform(0.6, 1.4))
    steps = draw.randrange(20_000, 400_000)
    world.shares[name] = shares
    world.jobs[name] = JobRow(
        job=name,
        gpus=gpus,
        gpu_type=gpu_type,
        nodes=len(shares),
        steps_done=draw.randrange(steps),
        steps=steps,
        steps_per_s=round(draw.uniform(0.5, 40), 2),
        gain=round(draw.uniform(1.0, 1.7), 3),
        partners=(),
    )
    return True


def _hold(world: World, job: str, node_name: str, gpus: int, factor: float) -> None:
    node = world.nodes[node_name]
    cpu = int(node.cpu_millis / node.gpus * gpus * factor)
    memory = int(node.memory_bytes / node.gpus * gpus * factor)
    world.nodes[node_name] = replace(
        node,
        gpus_given=node.gpus_given + gpus,
        cpu_millis_given=min(node.cpu_millis, node.cpu_millis_given + cpu),
        memory_bytes_given=min(node.memory_bytes, node.memory_bytes_given + memory),
        jobs=tuple(sorted((*node.jobs, job))),
    )


def _wait(world: World, draw: random.Random, name: str, gpus: int, gpu_type: str) -> None:
    reason, message, _ = draw.choices(REASONS, [weight for *_, weight in REASONS])[0]
    planned = reason not in ("WaitingForProfile", "NoGPUNodes")
    namespace, job = name.split("/")
    position = 1 + sum(row.position is not None for row in world.queue.values()) if planned else None
    world.queue[name] = QueueRow(
        namespace=namespace,
        job=job,
        position=position,
        reason=reason,
        message=message.format(gpus=gpus, types=gpu_type, tenant=namespace),
        gpus=gpus,
        gpu_types=draw.choice(((), (gpu_type,), (gpu_type, "T4") if gpu_type != "T4" else ("T4",))),
        steps_done=draw.choice((0, 0, 12_000, 45_000)),
        steps=draw.choice((0, 60_000, 120_000, 250_000)),
        waiting_s=round(draw.expovariate(1 / 5400), 1),
        start_s=None,
        start_by_s=None,
    )


def _share(world: World, draw: random.Random) -> None:
    """Some jobs of one GPU get a partner on it, which joins from the queue."""
    alone = [name for name, job in world.jobs.items() if job.gpus == 1]
    joining = [name for name, row in world.queue.items() if row.gpus == 1 and row.position is not None]
    for host, guest in list(zip(alone[::2], joining[::2], strict=False))[: max(3, len(alone) // 6)]:
        (node_name,) = world.shares[host]
        row = world.queue.pop(guest)
        world.shares[guest] = {node_name: 1}
        world.jobs[guest] = replace(
            world.jobs[host], job=guest, partners=(host,), steps=row.steps or 90_000, steps_done=row.steps_done
        )
        world.jobs[host] = replace(world.jobs[host], partners=(guest,))
        node = world.nodes[node_name]
        world.nodes[node_name] = replace(
            node, gpus_given=min(node.gpus, node.gpus_given), jobs=tuple(sorted((*node.jobs, guest)))
        )
    for place, (name, row) in enumerate(sorted(world.queue.items(), key=lambda one: one[1].position or 10**9), 1):
        if row.position is not None:
            world.queue[name] = replace(row, position=place)


def step(world: World, draw: random.Random, now: float) -> tuple[str, str] | None:
    """The job with the most progress ends and the first in the queue takes its place. Returns both names."""
    waiting = sorted(
        (row for row in world.queue.values() if row.position is not None), key=lambda row: row.position or 0
    )
    if not world.jobs or not waiting:
        return None
    world.now = now
    first = f"{waiting[0].namespace}/{waiting[0].job}"
    ended = max(
        (job for job in world.jobs.values() if not job.partners),
        key=lambda job: (job.gpus, job.steps_done / (job.steps or 1)),
    )
    shares = world.shares.pop(ended.job)
    del world.jobs[ended.job], world.queue[first]
    for node_name in shares:
        node = world.nodes[node_name]
        names = tuple(sorted((*(name for name in node.jobs if name != ended.job), first)))
        world.nodes[node_name] = replace(node, jobs=names)
    world.shares[first] = shares
    world.jobs[first] = replace(ended, job=first, steps_done=0, steps_per_s=round(draw.uniform(1, 30), 2))
    return ended.job, first
