"""`python -m chaos --seed 1 --faults 200 --jobs 100 --report out.json`: exit code 1 if a promise broke, a job did not
finish, or a step was lost or done twice."""

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import synergy_devcluster
from chaos.run import chaos
from chaos.workload import FAKE_NODES

_REPOSITORY = Path(__file__).parents[2]


def main() -> int:
    """Run with a devcluster of its own; one that is up is in the way."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("synergy_kube").setLevel(logging.ERROR)
    logging.getLogger("synergy_job").setLevel(logging.ERROR)
    options = synergy_devcluster.Options(fake_nodes=synergy_devcluster.parse_fake_nodes(FAKE_NODES))
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    cluster = synergy_devcluster.up(options)
    try:
        report = asyncio.run(
            chaos(cluster, _REPOSITORY, folder, seed=arguments.seed, faults=arguments.faults, jobs=arguments.jobs)
        )
    finally:
        synergy_devcluster.down()
    if arguments.report:
        report.write(arguments.report)
    sys.stdout.write(report.text() + "\n")
    sys.stderr.write(f"logs of the components: {folder}\n")
    return 0 if report.good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--folder", type=Path, help="an empty folder for logs and keys")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
