"""Which TrainingJob a pod belongs to: its name alone may be that of a later job."""

from synergy_api.cluster.nodes import Object
from synergy_api.names import ANNOTATION_JOB_UID


def job_uid(pod: Object) -> str:
    """The uid of the TrainingJob that the pod was made for, or made a worker of; empty where it names none."""
    metadata = pod.get("metadata") or {}
    owners = (one for one in metadata.get("ownerReferences") or () if one.get("controller"))
    owner = next((str(one["uid"]) for one in owners if one.get("kind") == "TrainingJob"), "")
    return (metadata.get("annotations") or {}).get(ANNOTATION_JOB_UID) or owner
