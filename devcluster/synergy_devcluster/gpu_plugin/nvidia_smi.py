#!/usr/bin/env python3
"""Replaces nvidia-smi in containers with fake GPUs: prints the usage that the clients of these GPUs report.

The plugin mounts a copy of this file, which therefore needs nothing but Python. Of a GPU without a client it knows
nothing, and says so as the real one does where a figure is not supported.
"""

import argparse
import fcntl
import json
import os
import sys
import time

CLIENTS_VARIABLE = "FAKE_GPU_CLIENTS"
NOT_KNOWN = "[N/A]"


def main() -> int:
    """Print a line for each GPU, once or every so often."""
    parser = argparse.ArgumentParser(prog="nvidia-smi", description="the fake GPUs of this container")
    parser.add_argument("--query-gpu", required=True, help="fields, with commas between them")
    parser.add_argument("--format", required=True, choices=["csv,noheader,nounits"])
    parser.add_argument("--loop-ms", type=int, default=0)
    given = parser.parse_args()
    folder = os.environ.get(CLIENTS_VARIABLE, "")
    gpus = [name for name in os.environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if name.startswith("GPU-")]
    fields = given.query_gpu.split(",")
    while True:
        for gpu in gpus:
            told = figures(gpu, os.path.join(folder, gpu))
            unknown = [field for field in fields if field not in told]
            if unknown:
                sys.stderr.write(f'Field "{unknown[0]}" is not a valid field to query.\n')
                return 2
            sys.stdout.write(", ".join(told[field] for field in fields) + "\n")
            sys.stdout.flush()
        if given.loop_ms <= 0:
            return 0
        time.sleep(given.loop_ms / 1000)


def figures(gpu: str, folder: str) -> dict[str, str]:
    """What the clients of a GPU do together, by the names of nvidia-smi's fields."""
    clients = [said for name in sorted(_names(folder)) if (said := _client(os.path.join(folder, name))) is not None]
    if not clients:
        return {**_of_all(gpu), **dict.fromkeys(("utilization.gpu", "utilization.memory", "memory.used"), NOT_KNOWN)}
    return {
        **_of_all(gpu),
        "utilization.gpu": _percent(sum(one.get("compute", 0.0) * one.get("busy", 0.0) for one in clients)),
        "utilization.memory": _percent(sum(one.get("bandwidth", 0.0) * one.get("busy", 0.0) for one in clients)),
        "memory.used": str(sum(int(one.get("memory_mib", 0)) for one in clients)),
    }


def _of_all(gpu: str) -> dict[str, str]:
    """What does not depend on its clients."""
    return {
        "uuid": gpu,
        "name": "Fake GPU",
        "memory.total": "16384",
        "driver_version": "0.0",
        "compute_mode": "Default",
    }


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _percent(part: float) -> str:
    return str(min(100, round(100 * part)))


def _client(path: str) -> "dict[str, float] | None":
    """What a living client says of itself; it holds a lock on its file as long as it lives."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        said = json.loads(os.pread(file, 4096, 0) or b"{}")
        return said if isinstance(said, dict) else None
    except OSError:
        return None
    finally:
        os.close(file)
    return None


if __name__ == "__main__":
    sys.exit(main())
