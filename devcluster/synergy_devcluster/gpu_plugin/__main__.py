"""Run the device plugin: ``python -m synergy_devcluster.gpu_plugin --node NAME --gpus N``."""

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path

from synergy_devcluster.gpu_plugin.devices import ExclusiveGpus, gpu_uuids
from synergy_devcluster.gpu_plugin.runner import Settings, run


def main(arguments: list[str] | None = None) -> None:
    """Read the flags and serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="gpu-plugin", description="offer fake NVIDIA GPUs to a kubelet")
    parser.add_argument("--node", required=True, help="node name, from which the GPUs' UUIDs are derived")
    parser.add_argument("--gpus", required=True, type=int, help="number of GPUs")
    parser.add_argument("--resource", default="nvidia.com/gpu", help="resource name (default %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("/var/lib/kubelet/device-plugins"), help="kubelet's folder")
    parser.add_argument("--endpoint", default="kube-synergy-gpu.sock", help="the plugin's socket in that folder")
    parser.add_argument(
        "--health-file", type=Path, required=True, help="JSON list of unhealthy GPUs' UUIDs, read again on change"
    )
    flags = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = Settings(flags.folder, flags.resource, flags.endpoint, flags.health_file)
    run(settings, ExclusiveGpus(gpu_uuids(flags.node, flags.gpus)), stop)


if __name__ == "__main__":
    main()
