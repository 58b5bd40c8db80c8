"""What it costs a process to read a large cluster: `python list_cost.py URL` prints it as one line of JSON.

It is a process of its own, so that its memory is that of the reader alone.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from synergy_extender.cluster.cache import ClusterCache
from synergy_kube import KubeClient


class Stalls:
    """The longest time that the event loop has worked without a break, in CPU seconds: on a busy machine the clock also
    counts the work of others."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Look after each turn of the event loop until cancelled."""
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest = max(self.longest, now - last)
            last = now


def _megabytes(field: str) -> float:
    """VmRSS is what the process holds now, VmHWM the most that it ever held; getrusage also counts its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


async def _cost(url: str) -> dict[str, float]:
    stalls = Stalls()
    async with KubeClient.at(url) as client:
        cache = ClusterCache(client, lambda: None)
        before, began = _megabytes("VmRSS"), time.monotonic()
        tasks = [asyncio.create_task(work) for work in (cache.run(), stalls.watch())]
        await cache.wait_synced()
        seconds = time.monotonic() - began
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "pods": len(cache.pods),
        "peak_megabytes": round(_megabytes("VmHWM") - before, 1),
        "kept_megabytes": round(_megabytes("VmRSS") - before, 1),
        "longest_stall_ms": round(stalls.longest * 1000, 1),
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(_cost(sys.argv[1]))) + "\n")
