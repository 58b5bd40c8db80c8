"""A digest of what the planner decides: `PYTHONPATH=tests python -m support.planner.plan_digest --snapshots 300`.

Plans seeded random snapshots under every ordering policy on every mechanism, and prints a SHA-256 of the plans' JSON
documents for each pair of a policy and a mechanism, and one over all. Two commits that print the same decide the same.

Each snapshot is planned in `round` mode. The plan is carried out, and the result is planned in `fill` and in `round`
mode with the same cache. Options for sharing, placement and preemption are spread over the pairs. `--simulate` adds the
simulator's results on the example trace. `--pairs 8` plans each snapshot under 8 pairs only: for thousands of them.
"""

import argparse
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from synergy_core.cache import Memory
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import PlanConfig, PriorityQueues
from synergy_core.model.snapshot import FieldError
from synergy_core.model.snapshot_format import parse_snapshot, plan_document
from synergy_core.plan import plan
from synergy_core.policies import POLICIES

Document = dict[str, Any]

GIB = 2**30
TYPES = ("A100", "V100")
EXAMPLES = Path(__file__).parents[3] / "examples" / "simulation"
SIMULATED = ("2d-las", "fifo", "srtf", "max-min-fairness", "finish-time-fairness")

VARIANTS: tuple[Document, ...] = (
    {},
    {"pack_limit": 0.3, "placement_sensitive": True},
    {"minimum_run_s": 100.0, "preemption_payback": 0.0},
    {"colocation": "auto"},
    {"colocation": "thesis", "preemption_payback": 0.0},
    {"colocation": "thesis-fractions", "profile_gpu_percent": 100},
    {"colocation": "gavel", "aware": False},
    {"estimate": "all", "placement_sensitive": True},
    {"estimate": "none", "link_bytes_per_s": 1e9},
    {"queues": {"thresholds_gpu_s": (2.0, 4.0), "promote_knob": 0.5, "service_gpu_s": (1.0, 3.0, 3.5, 9.0)}},
    {"queues": {"thresholds_gpu_s": (), "promote_knob": 2.0}, "preemption_payback": 0.0},
)
"""Options beside policy, mechanism and mode."""


def nodes(rng: random.Random) -> list[Document]:
    """One to five nodes of two GPU types; some are cordoned, shared by MPS, or partly used by other pods."""
    found = []
    network = rng.random() < 0.3
    for index in range(rng.randint(1, 5)):
        gpus = rng.choice((1, 2, 4, 8))
        node: Document = {
            "name": f"n{index}",
            "gpu_type": rng.choice(TYPES),
            "gpus": gpus,
            "cpu_millis": rng.randint(gpus * 500, gpus * 6000),
            "memory_bytes": rng.randint(gpus * GIB, gpus * 70 * GIB),
            "schedulable": rng.random() < 0.85,
            "price_per_hour": rng.choice((0.5, 2.0)),
        }
        if network:
            node["further"] = {"network": rng.randint(gpus * 10, gpus * 1000)}
        if rng.random() < 0.3:
            node["gpus_used"] = rng.randint(0, gpus)
            node["cpu_millis_used"] = rng.randint(0, node["cpu_millis"])
            node["memory_bytes_used"] = rng.randint(0, node["memory_bytes"])
        if rng.random() < 0.6:
            node |= {"replicas": rng.choice((2, 3)), "gpu_memory_bytes": 16 * GIB}
            node["client_thread_percent"] = rng.choice((50, 100))
        found.append(node)
    return found


def profile(rng: random.Random, gpus: int) -> Document:
    """A sensitivity matrix in which the slower of CPU and memory sets the pace."""
    cpu = sorted({rng.randint(1, gpus * 48) * 250 for _ in range(rng.randint(1, 5))})
    memory = sorted({rng.randint(1, gpus * 80) * GIB for _ in range(rng.randint(1, 4))})
    knee, saturated = rng.randint(250, gpus * 12000), rng.randint(1, gpus * 80) * GIB
    best = rng.choice((2.0, 10.0, 25.0))
    speed = [[best * min(1.0, c / knee, 0.2 + 0.8 * m / saturated) for m in memory] for c in cpu]
    return {"cpu_millis": cpu, "memory_bytes": memory, "steps_per_s": speed}


def usage(rng: random.Random) -> Document:
    return {
        "compute": rng.choice((0.2, 0.45, 0.9)),
        "bandwidth": rng.choice((0.05, 0.3, 0.6)),
        "memory_bytes": rng.choice((2, 5, 9)) * GIB,
        "model": rng.choice(("", "resnet", "bert")),
    }


def job(rng: random.Random, name: str, quotas: list[str]) -> Document:
    """A waiting job with any of the options that a plan looks at."""
    gpus = rng.choice((1, 1, 1, 1, 2, 2, 3, 4, 6, 8))
    types = rng.choice(((), (), ("A100",), ("V100",), TYPES))
    started = rng.random() < 0.5
    found: Document = {
        "name": name,
        "gpus": gpus,
        "arrival_s": float(rng.randint(0, 5)),
        "weight": rng.choice((1.0, 1.0, 2.0)),
        "tenant": rng.choice(("", "red", "blue")),
        "gpu_types": list(types),
        "profiles": {kind: profile(rng, gpus) for kind in types or TYPES if rng.random() < 0.6},
        "measured": rng.choice(({}, {}, {"A100": 3.0}, {"A100": 3.0, "V100": 2.0})),
        "steps_total": rng.choice((None, 100, 1000)),
        "steps_done": rng.randint(0, 100),
        "attained_gpu_s": float(rng.randint(0, 6)) if started else 0.0,
        "waiting_s": float(rng.randint(0, 6)),
        "started_s": float(rng.randint(-3, 0)) if started else None,
        "skew": rng.choice((0.1, 0.7)),
        "spread_speed": rng.choice((None, None, 0.5, 1.0)),
        "model": rng.choice(("", "resnet", "bert")),
        "model_bytes": rng.choice((None, 10**8)),
        "preemptible": rng.random() < 0.8,
        "placement": rng.choice(("auto", "auto", "auto", "spread", "consolidate", "pack")),
        "preemption_cost_s": rng.choice((0.0, 30.0)),
        "nodes": rng.choice((None, None, None, None, ["n0"], ["n0", "n2", "n3"])),
        "deadline_s": rng.choice((None, None, None, 20.0, 2000.0)),
        "received_s": rng.choice(({}, {"A100": 60.0}, {"A100": 60.0, "V100": 300.0})),
    }
    if rng.random() < 0.6:
        found |= {"sharing": True, "sharing_across_tenants": rng.random() < 0.7}
        found["usage"] = {kind: usage(rng) for kind in TYPES}
    if rng.random() < 0.2:
        found |= {"cpu_millis_min": rng.randint(1, 6000), "memory_bytes_min": rng.choice((0, GIB, 64 * GIB))}
        found["purpose"] = rng.choice(("train", "profile"))
    if quotas and rng.random() < 0.5:
        found["quotas"] = [{"quota": rng.choice(quotas), "per_pod": {"pods": 1}}]
    return found


def snapshot(seed: int) -> Document:
    """The document of a snapshot that depends on the seed only."""
    rng = random.Random(seed)
    quotas: list[Document] = []
    if rng.random() < 0.3:
        limits = [
            {"resource": "requests.nvidia.com/gpu", "counts": "gpus", "hard": rng.randint(0, 8)},
            {"resource": "requests.cpu", "counts": "cpu_millis", "hard": rng.randint(500, 20000)},
            {"resource": "pods", "counts": "objects", "hard": rng.randint(0, 6)},
        ]
        quotas = [{"name": "q0", "limits": limits}]
    names = [quota["name"] for quota in quotas]
    return {
        "nodes": nodes(rng),
        "jobs": [job(rng, f"j{index:02}", names) for index in range(rng.randint(1, 14))],
        "now": 10.0,
        "tenants": [{"name": "red", "weight": 2.0, "policy": rng.choice(("fairness", "fifo"))}],
        "quotas": quotas,
    }


def carried_out(document: Document, answer: Document, seed: int) -> Document:
    """The cluster once the plan has been carried out, and a few jobs later."""
    rng = random.Random(-seed - 1)
    given = {one["job"]: one for one in answer["allocations"]}
    jobs = [one | {"running": given.get(one["name"])} for one in document["jobs"] if rng.random() < 0.8]
    for one in jobs:
        if one["running"] is not None:
            one["run_started_s"] = rng.choice((None, -50.0, -500.0))
            one["started_s"] = one["started_s"] or 0.0
    new = [job(rng, f"k{index:02}", [quota["name"] for quota in document["quotas"]]) for index in range(4)]
    return document | {"jobs": [*jobs, *new], "now": 300.0}


def planned(document: Document, options: Document, mode: str, memory: Memory) -> Document:
    """The plan's document, or that of the refusal."""
    try:
        queues = PriorityQueues(**options.get("queues", {}))
        config = PlanConfig(**{**options, "queues": queues, "mode": mode})
        return plan_document(plan(parse_snapshot(json.dumps(document)), config, memory), seconds=0.0)
    except FieldError as error:
        return {"refused": str(error), "allocations": []}


def canonical(document: Document) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def pairs_digest(policy: str, mechanism: str, seeds: Iterable[int]) -> str:
    """SHA-256 over the plans of all snapshots under one policy on one mechanism."""
    digest = hashlib.sha256()
    offset = sorted(POLICIES).index(policy) * 3 + sorted(MECHANISMS).index(mechanism)
    for seed in seeds:
        document = snapshot(seed)
        options = {"policy": policy, "mechanism": mechanism} | VARIANTS[(seed + offset) % len(VARIANTS)]
        memory = Memory()
        first = planned(document, options, "round", memory)
        digest.update(canonical(first))
        later = carried_out(document, first, seed)
        for mode in ("fill", "round"):
            digest.update(canonical(planned(later, options, mode, memory)))
    return digest.hexdigest()


def simulated(policy: str, mechanism: str = "tune") -> str:
    """SHA-256 of the simulator's results on the example trace; the planner's seconds are left out."""
    inputs = {"--trace": "trace.csv", "--profiles": "profiles.json", "--cluster": "cluster.yaml"}
    arguments = [text for option, file in inputs.items() for text in (option, str(EXAMPLES / file))]
    command = [str(Path(sys.executable).with_name("kube-synergy")), "simulate", *arguments, "--json"]
    command += ["--policy", policy, "--mechanism", mechanism]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return hashlib.sha256(canonical(without_seconds(result))).hexdigest()


def without_seconds(value: Any) -> Any:
    """The value without what depends on the machine's speed."""
    if isinstance(value, dict):
        return {
            key: without_seconds(one) for key, one in value.items() if key != "wall_s" and not key.startswith("plan_")
        }
    return [without_seconds(one) for one in value] if isinstance(value, list) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed of the first snapshot")
    parser.add_argument("--pairs", type=int, help="plan each snapshot under so many pairs only, drawn from its seed")
    parser.add_argument("--simulate", action="store_true")
    options = parser.parse_args()
    whole = hashlib.sha256()
    everything = [(policy, mechanism) for policy in sorted(POLICIES) for mechanism in sorted(MECHANISMS)]
    drawn: dict[tuple[str, str], list[int]] = {pair: [] for pair in everything}
    for seed in range(options.first, options.first + options.snapshots):
        for pair in random.Random(f"pairs {seed}").sample(everything, options.pairs or len(everything)):
            drawn[pair].append(seed)
    for (policy, mechanism), seeds in drawn.items():
        if seeds:
            found = pairs_digest(policy, mechanism, seeds)
            whole.update(found.encode())
            print(policy, mechanism, found, flush=True)
    for policy in SIMULATED if options.simulate else ():
        found = simulated(policy)
        whole.update(found.encode())
        print("simulate", policy, found, flush=True)
    print("all", whole.hexdigest())


if __name__ == "__main__":
    main()
