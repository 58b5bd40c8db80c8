"""Reasons of jobs that stand to others: they wait for jobs, are an array, or start and stop another object."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason

_R: Final = (ReasonPlace.RUNNING,)

RELATIONS: Final[dict[Reason, Entry]] = {
    Reason.WAITS_FOR_JOBS: Entry(
        _R,
        "the job waits for {jobs}",
        "take them out of spec.after to go on without them",
        "Jobs of spec.after are not done. The job is neither profiled nor planned, and has no place in the queue.",
        "Normal",
    ),
    Reason.DEPENDENCY_CYCLE: Entry(
        _R,
        "jobs wait for each other: {path}",
        "take one of them out of spec.after",
        event="Warning",
    ),
    Reason.MEMBERS_OPEN: Entry(
        _R,
        "of the {count} jobs of the array {running} run, {waiting} wait and {done} are finished",
        means="`kubectl get tj -l kube-synergy.dev/array=NAME` lists them.",
        event="Normal",
    ),
    Reason.MEMBER_REFUSED: Entry(
        _R,
        "the API server refuses a job of the array: {problem}",
        "delete what has the name, or have the quota or the policy changed that refuses it",
        "The operator tries again every 30 s. The other jobs of the array go on.",
        "Warning",
    ),
    Reason.DEPENDENCY_FAILED: Entry(
        (ReasonPlace.FINISHED,),
        "{jobs} failed, and spec.after waits for success",
        "create the job anew when they have succeeded, or with until: Finished",
        event="Warning",
    ),
    Reason.ALL_MEMBERS_SUCCEEDED: Entry(
        (ReasonPlace.FINISHED,), "all {count} jobs of the array succeeded", event="Normal"
    ),
    Reason.MEMBERS_FAILED: Entry(
        (ReasonPlace.FINISHED,),
        "{failed} of the {count} jobs of the array failed: {indexes}",
        "`kubectl synergy why NAME-INDEX` tells why",
        event="Warning",
    ),
    Reason.NOT_MANAGED: Entry(
        (ReasonPlace.VALID, ReasonPlace.EVENT),
        "{object} cannot be managed: {problem}",
        "correct it, or remove the label kube-synergy.dev/managed",
        "An event on an object with the label. It stays as it is.",
        "Warning",
    ),
    Reason.MANAGED_STATE: Entry(
        (ReasonPlace.EVENT,),
        "TrainingJob {job} is {phase}: {why}",
        means="An event on a managed object, whenever its TrainingJob has another phase or reason.",
        event="Normal",
    ),
}
