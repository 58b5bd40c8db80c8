"""Give released volumes back: what a static local provisioner does on a real cluster.

A volume whose claim was deleted is emptied and made anew, so that the next claim binds to it. Runs as a
component of its own: ``python -m synergy_devcluster.volumes --state FOLDER``.
"""

import argparse
import http.client
import logging
import shutil
import signal
import sys
import threading
from pathlib import Path

from synergy_devcluster.api import Api
from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.manifests import STORAGE_CLASS, volume
from synergy_devcluster.paths import Paths

LOG = logging.getLogger("volume-recycler")
POLL_S = 1.0
_VOLUMES = "/api/v1/persistentvolumes"


def recycle(api: Api, folder: Path) -> list[str]:
    """Empty and make anew every released volume of ours; return their names."""
    released = [
        item["metadata"]["name"]
        for item in api.get(_VOLUMES)["items"]
        if item["spec"].get("storageClassName") == STORAGE_CLASS and item["status"].get("phase") == "Released"
    ]
    for name in released:
        api.delete(f"{_VOLUMES}/{name}")
        _empty(folder / name)
        api.apply(volume(folder, int(name.rpartition("-")[2])))
    return released


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def main(arguments: list[str] | None = None) -> None:
    """Recycle until SIGTERM; an API server that is away is waited for."""
    parser = argparse.ArgumentParser(prog="volume-recycler", description="give released volumes back")
    parser.add_argument("--state", type=Path, required=True, help="the devcluster's state folder")
    paths = Paths(state=parser.parse_args(arguments).state)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    api = Api(paths.pki)
    while not stop.wait(POLL_S):
        try:
            for name in recycle(api, paths.volumes):
                LOG.info("%s is free again", name)
        except (OSError, http.client.HTTPException, DevclusterError) as error:
            LOG.warning("will try again: %s", error)


if __name__ == "__main__":
    main()
