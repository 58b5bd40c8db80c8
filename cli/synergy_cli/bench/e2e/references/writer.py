"""`python -m ... FILE`, the cluster by KUBECONFIG: applies the status in the file to each TrainingJob that has none.

The file has a status that the operator wrote. So this is what the operator's writes cost if nothing decides on them.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from synergy_api.names import MANAGER_OPERATOR
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import TRAINING_JOBS

_AT_ONCE = 16


async def _write(status: dict[str, Any]) -> None:
    new: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def changed(change: Change) -> None:
        if change.new is not None and not change.new["written"]:
            new.put_nowait(change.new["metadata"])

    async with await KubeClient.connect(os.environ["KUBECONFIG"]) as kube:

        async def work() -> None:
            while True:
                job = await new.get()
                body = {"metadata": {"resourceVersion": job["resourceVersion"]}, "status": status}
                await kube.apply(
                    TRAINING_JOBS, job["name"], body, job["namespace"], manager=MANAGER_OPERATOR, subresource="status"
                )

        async with asyncio.TaskGroup() as group:
            group.create_task(Reflector(kube, TRAINING_JOBS, trim=_trim, on_change=changed).run())
            for _ in range(_AT_ONCE):
                group.create_task(work())


def _trim(item: dict[str, Any]) -> dict[str, Any]:
    kept = {key: item["metadata"][key] for key in ("namespace", "name", "resourceVersion")}
    return {"metadata": kept, "written": bool(item.get("status"))}


if __name__ == "__main__":
    uvloop.run(_write(msgspec.json.decode(Path(sys.argv[1]).read_bytes())))
