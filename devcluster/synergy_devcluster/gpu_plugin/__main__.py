"""Run the device plugin: ``python -m synergy_devcluster.gpu_plugin --node NAME --gpus N``."""

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path

from synergy_devcluster.gpu_plugin.devices import ExclusiveGpus, Sharing, gpu_uuids, prepare
from synergy_devcluster.gpu_plugin.runner import Settings, run
from synergy_devcluster.gpu_plugin.shared import MAX_REPLICAS, PREFERENCES, MpsGpus


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
    parser.add_argument("--replicas", type=int, default=1, help="clients of one GPU under MPS; 1: GPUs are not shared")
    parser.add_argument("--preference", choices=PREFERENCES, default="distributed", help="which GPU a client gets")
    parser.add_argument("--memory-mib", type=int, default=16384, help="memory of one GPU (default %(default)s)")
    parser.add_argument("--clients-folder", type=Path, help="host folder that the clients of the GPUs see")
    flags = parser.parse_args(arguments)
    if not 1 <= flags.replicas <= MAX_REPLICAS:
        parser.error(f"--replicas: {flags.replicas} is not between 1 and {MAX_REPLICAS}")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = Settings(flags.folder, flags.resource, flags.endpoint, flags.health_file)
    uuids = gpu_uuids(flags.node, flags.gpus)
    sharing: Sharing = ExclusiveGpus(uuids, flags.clients_folder)
    if flags.replicas > 1:
        sharing = MpsGpus(uuids, flags.replicas, flags.preference, flags.memory_mib, flags.clients_folder)
    if flags.clients_folder is not None:
        prepare(flags.clients_folder, uuids)
    run(settings, sharing, stop)


if __name__ == "__main__":
    main()
