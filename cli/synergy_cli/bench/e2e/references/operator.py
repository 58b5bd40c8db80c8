"""`python -m ...`, the cluster by KUBECONFIG: writes one field into the status of each TrainingJob that has none."""

from typing import Any

import kopf
import uvloop

from synergy_kube.resources import TRAINING_JOBS


@kopf.on.startup()
async def quietly(settings: kopf.OperatorSettings, **_: Any) -> None:
    """As the product: no event for what a handler did."""
    settings.posting.enabled = False


@kopf.on.event(TRAINING_JOBS.group, TRAINING_JOBS.version, TRAINING_JOBS.plural)
async def queue(status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    """Reconciled once, in one write."""
    if not status.get("phase"):
        patch.status["phase"] = "Queued"


if __name__ == "__main__":
    # kopf's own way to find a name asks for the user's, and a container's user may have none
    uvloop.run(kopf.operator(clusterwide=True, standalone=True, identity="bench"))  # type: ignore[arg-type]
