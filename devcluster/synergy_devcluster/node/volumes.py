"""Give released volumes back: what a static local provisioner does on a real cluster.

A volume whose claim was deleted is emptied and made anew. The next claim can then bind to it. Runs as a component of
its own: ``python -m synergy_devcluster.node.volumes --name NAME``.
"""

import argparse
import http.client
import logging
import shutil
import signal
import sys
import threading
from pathlib import Path

from synergy_devcluster.control_plane.api import Api
from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.node.manifests import STORAGE_CLASS, volume
from synergy_devcluster.paths import Paths

LOG = logging.getLogger("volume-recycler")
POLL_S = 1.0
_VOLUMES = "/api/v1/persistentvolumes"


def recycle(api: Api, folder: Path) -> list[str]:
    """Empty and delete every released volume, and make anew every one that is gone; return the names made anew.

    A deleted volume takes a moment to go, so the two halves of one volume fall into different calls.
    """
    volumes = {item["metadata"]["name"]: item for item in api.get(_VOLUMES)["items"]}
    for name, item in volumes.items():
        ours = item["spec"].get("storageClassName") == STORAGE_CLASS and (folder / name).is_dir()
        if ours and item["status"].get("phase") == "Released" and "deletionTimestamp" not in item["metadata"]:
            _empty(folder / name)
            api.delete(f"{_VOLUMES}/{name}")
    gone = sorted(path.name for path in folder.iterdir() if path.name not in volumes)
    for name in gone:
        api.apply(volume(folder, int(name.rpartition("-")[2])))
    return gone


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def main(arguments: list[str] | None = None) -> None:
    """Recycle until SIGTERM; an API server that is away is waited for."""
    parser = argparse.ArgumentParser(prog="volume-recycler", description="give released volumes back")
    parser.add_argument("--name", required=True, help="the devcluster's name")
    paths = Paths.of(parser.parse_args(arguments).name)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with Api(paths.pki) as api:
        while not stop.wait(POLL_S):
            try:
                for name in recycle(api, paths.volumes):
                    LOG.info("%s is free again", name)
            except (OSError, http.client.HTTPException, DevclusterError) as error:
                LOG.warning("will try again: %s", error)


if __name__ == "__main__":
    main()
