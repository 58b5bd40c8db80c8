"""The recorder alone as a process: `python -m support.dashboard.recording URL KUBECONFIG`."""

import asyncio
import logging
import sys

from synergy_dashboard.recorder.follow import Recorder
from synergy_dashboard.store.store import Store
from synergy_kube import KubeClient


async def record(url: str, kubeconfig: str) -> None:
    """Record until killed."""
    store = Store(url)
    store.migrate()
    async with await KubeClient.connect(kubeconfig=kubeconfig) as client:
        await Recorder(client, store).run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(record(*sys.argv[1:]))
