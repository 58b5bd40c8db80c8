"""What `synergy_service.heap` saves: `PYTHONPATH=tests python -m support.extender.collector_pauses --jobs 5000`.

A process holds the views of a cluster as the extender does: half of the jobs run with a matrix and a worker pod each,
the rest wait. Each round replaces the view of every job and pod and builds a snapshot. Prints the processor time of
Python's cyclic garbage collector: per round, and of its longest pause. Run once with `heap.settle()` and once without.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from typing import Any

from support.extender.cluster import NOW, allocation, cluster, job, node_object, share, worker
from synergy_extender.snapshot.snapshot import build_snapshot
from synergy_service import heap

GIB = 1 << 30
MATRIX = {
    "gpuType": "V100",
    "cpuMillis": [1000, 2000, 4000, 8000],
    "memoryBytes": [4 * GIB, 8 * GIB, 16 * GIB],
    "stepsPerSecond": [[1.0, 1.2, 1.3], [1.5, 1.8, 2.0], [1.9, 2.4, 2.8], [2.0, 2.6, 3.0]],
}


class CollectorTime:
    """Processor seconds of each run of the collector, from its callbacks."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._started = 0.0
        gc.callbacks.append(self._called)

    def _called(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._started = time.process_time()
        else:
            self.pauses.append(time.process_time() - self._started)


def objects_of(number: int, now: float) -> tuple[Any, Any]:
    """The view of one job and of its pod, read anew; None for the pod of a job that waits."""
    name, node = f"j{number}", f"n{number // 16}"
    spec = {"profile": {"mode": "Provided", "matrices": [MATRIX]}}
    if number % 2:
        return job(name, spec=spec, status={"queue": {"reason": "NoFreeGPU", "position": number}}), None
    held = allocation(share(node, 1, 2000, 4 * GIB), until=now + 20)
    status = {"phase": "Running", "allocation": held, "progress": {"steps": int(now) % 1000}}
    pod = worker(name, node=node, gpus=1, cpu="2", memory="4Gi", planned=node, phase="Running")
    return job(name, spec=spec, status=status), pod


def measure(jobs: int, rounds: int, *, settled: bool) -> dict[str, float]:
    """The collector's time in milliseconds."""
    nodes = [node_object(f"n{index}", cpu=48, memory_gib=256) for index in range(jobs // 16 + 1)]
    views = {number: objects_of(number, NOW) for number in range(jobs)}
    if settled:
        heap.settle()
    collector = CollectorTime()
    started = time.process_time()
    for each in range(1, rounds + 1):
        now = NOW + 20 * each
        for number in range(jobs):
            views[number] = objects_of(number, now)
        pods = [pod for _, pod in views.values() if pod is not None]
        state = cluster(nodes, [one for one, _ in views.values()], pods)
        build_snapshot(state, mode="round", now=now, round_s=20)
    return {
        "collector_ms_per_round": 1e3 * sum(collector.pauses) / rounds,
        "longest_pause_ms": 1e3 * max(collector.pauses, default=0.0),
        "round_ms": 1e3 * (time.process_time() - started) / rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3, help="processes for each of the two, in turn")
    parser.add_argument("--one", choices=("with", "without"), help="measure one of the two in this process")
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.jobs, options.rounds, settled=options.one == "with")))
        return
    sizes = ["--jobs", str(options.jobs), "--rounds", str(options.rounds)]
    for _ in range(options.repeats):
        for one in ("without", "with"):
            command = [sys.executable, "-m", "support.extender.collector_pauses", *sizes, "--one", one]
            print(f"{one:8}", subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


if __name__ == "__main__":
    main()
