"""`python -m chaos --seed 1 --faults 200 --jobs 100 --report out.json`: exit code 1 if a promise broke, a job did not
finish, or a step was lost or done twice."""

import argparse
import asyncio
import logging
import signal
import sys
import tempfile
from collections.abc import Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import synergy_devcluster
from chaos.report import Report
from chaos.run import chaos
from chaos.stage import stage
from chaos.workload import fake_nodes
from support.arguments import at_least
from synergy_kube import KubeClient

_REPOSITORY = Path(__file__).parents[2]


def main() -> int:
    """Run with a devcluster of its own. Exit code 2 for bad input, one that is up already included."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("synergy_kube").setLevel(logging.ERROR)
    logging.getLogger("synergy_job").setLevel(logging.ERROR)
    options = synergy_devcluster.Options(fake_nodes=synergy_devcluster.parse_fake_nodes(fake_nodes(arguments.jobs)))
    counts = {"seed": arguments.seed, "faults": arguments.faults, "jobs": arguments.jobs}
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        with synergy_devcluster.alone(options, report=partial(print, file=sys.stderr)) as cluster:
            report = asyncio.run(_told_to_stop(_on(cluster, folder, counts)))
    except synergy_devcluster.BadInputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    if arguments.report:
        report.write(arguments.report)
    sys.stdout.write(report.text() + "\n")
    sys.stderr.write(f"logs of the components: {folder}\n")
    return 0 if report.good else 1


async def _on(cluster: synergy_devcluster.Cluster, folder: Path, counts: Mapping[str, int]) -> Report:
    async with (
        await KubeClient.connect(kubeconfig=str(cluster.kubeconfig)) as kube,
        stage(cluster, kube, _REPOSITORY, folder) as whole,
    ):
        return await chaos(whole, **counts)


async def _told_to_stop(work: Coroutine[Any, Any, Report]) -> Report:
    """Do it; SIGTERM ends it as an interrupt from the keyboard does, and with it all that it started."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=at_least(0), default=200)
    parser.add_argument("--jobs", type=at_least(1), default=100)
    parser.add_argument("--report", type=_new_file, help="where the report goes, as JSON")
    parser.add_argument("--folder", type=Path, help="an empty folder for logs and keys")
    return parser.parse_args()


def _new_file(text: str) -> Path:
    if not Path(text).absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: there is no such folder")
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
