"""`python -m soak --gpus 10000 --minutes 60 --out FOLDER`: exit code 1 if a job was lost, or something ran twice."""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import synergy_devcluster
from soak.page import page
from soak.report import good
from soak.run import soak
from soak.size import Size
from soak.stage import fake_nodes
from support.arguments import at_least
from synergy_kube import KubeClient

_STARTING_S = 300.0
"""For starting and ending the product, beyond the soak and its drain."""
_tell = partial(print, file=sys.stderr, flush=True)


class OverdueError(Exception):
    """The soak takes longer than it may."""


def main() -> int:
    """Run with a devcluster of its own. Exit code 2 for bad input, one that is up already included; 3 if the soak does
    not end in its time."""
    arguments = _arguments()
    size = Size(
        gpus=arguments.gpus, minutes=arguments.minutes, load=arguments.load, seed=arguments.seed,
        mean_life_s=arguments.life_seconds,
    )  # fmt: skip
    out: Path = arguments.out
    for folder in (out, *([arguments.logs] if arguments.logs else [])):
        folder.mkdir(parents=True, exist_ok=True)
    options = synergy_devcluster.Options(gpus=0, fake_nodes=(fake_nodes(size),))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="soak-") as folder,
            synergy_devcluster.alone(options, report=_tell) as cluster,
        ):
            found = asyncio.run(_bounded(_on(cluster, arguments.logs or Path(folder), size), size))
    except synergy_devcluster.BadInputError as error:
        _tell(f"error: {error}")
        return 2
    except OverdueError:
        _tell("error: the soak did not end in its time")
        return 3
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    (out / "soak.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
    (out / "soak.md").write_text(page(found), encoding="utf-8")
    sys.stdout.write(page(found))
    return 0 if good(found) else 1


async def _on(cluster: synergy_devcluster.Cluster, folder: Path, size: Size) -> Any:
    async with await KubeClient.connect(kubeconfig=str(cluster.kubeconfig)) as kube:
        return await soak(cluster, kube, folder, size, _tell)


async def _bounded(work: Coroutine[Any, Any, Any], size: Size) -> Any:
    """Do it in its time; SIGTERM ends it as an interrupt from the keyboard does, and with it all that it started."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with asyncio.timeout(size.seconds + size.drain_s + _STARTING_S) as bound:
            return await task
    except TimeoutError as error:
        if bound.expired():
            raise OverdueError from error
        raise


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--gpus", type=at_least(8), default=10_000)
    parser.add_argument("--minutes", type=at_least(1), default=60)
    parser.add_argument("--load", type=_share, default=0.9, help="share of the GPUs that unfinished jobs ask for")
    parser.add_argument("--life-seconds", type=at_least(1), default=0, help="mean seconds of a job's training")
    parser.add_argument("--seed", type=at_least(0), default=1)
    parser.add_argument("--out", type=Path, default=Path("soak"), help="where soak.json and soak.md go")
    parser.add_argument("--logs", type=Path, help="an empty folder for logs and keys")
    return parser.parse_args()


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r}: write a number above 0, at most 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
