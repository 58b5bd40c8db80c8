"""The outcome of a training run, derived from its pods."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from synergy_api.length import MOST_STEPS
from synergy_api.parts.progress import Progress
from synergy_api.parts.service import LONGEST_EARLY, MOST_FAILED_ON, RunOutcome
from synergy_api.quantity import format_bytes
from synergy_api.reasons import Finding, Reason, say
from synergy_operator.pods.gang import GangWorker
from synergy_operator.run.step import reason_of, reason_text
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.pod import PodView
from synergy_operator.views.worker_state import WorkerState, termination_message, worker_state

STRAGGLER_SECONDS: Final = 30.0
"""How long the rest of a gang may take to leave after the first worker has left."""

_KILLED: Final = 137
"""Exit code of a process that SIGKILL ended, for example after its grace period."""
_NEVER_RAN: Final = ("StartError", "ContainerCannotRun")
_DEVICES_REFUSED: Final = "UnexpectedAdmissionError"
"""The kubelet's reason for a pod whose devices the node could not give. Others are of pods that came first."""
_LONGEST_SAVE: Final = 1e6
_LONGEST_TRAINING: Final = 1e10
"""The most seconds that a worker may report, as in its reports to the extender."""


def natural_end(
    run: int, gang: Iterable[GangWorker], pods: Iterable[PodView], cluster: ClusterView, now: float
) -> RunOutcome | None:
    """The outcome of a run whose pods the operator has not deleted; None while it continues.

    A worker's own failure takes precedence over the loss of another worker. The exception is a lost node: then the
    failure is most likely a consequence of the loss.
    """
    found = {pod.rank: pod for pod in pods}
    states = {rank: worker_state(pod) for rank, pod in found.items()}
    missing = [worker.rank for worker in gang if worker.rank not in found]
    failed = _first(states, WorkerState.FAILED)
    blamed = [rank for rank, pod in sorted(found.items()) if states[rank] is WorkerState.FAILED and _checkpoint(pod)]
    if failed is not None:
        failed = blamed[0] if blamed else failed
        ended = _lost_with_node(run, found, states, cluster) or _failed(run, found[failed])
        return _on(ended, _failed_on(found, states, failed, alone=bool(blamed)))
    refused = _first(states, WorkerState.REFUSED)
    if refused is not None:
        pod = found[refused]
        ended = _outcome(
            run, "Evicted", say(Reason.WORKER_REFUSED, run=run, rank=refused, problem=pod.message or pod.reason)
        )
        return _on(ended, [pod.node] if pod.reason == _DEVICES_REFUSED else [])
    lost = _first(states, WorkerState.LOST)
    if lost is not None or missing:
        rank = missing[0] if lost is None else lost
        problem = _loss(found[rank]) if rank in found else "its pod was deleted"
        return _outcome(run, "Evicted", say(Reason.WORKER_LOST, run=run, rank=rank, problem=problem))
    return _left(run, found, states, now)


def straggler_wait(pods: Iterable[PodView], now: float) -> float | None:
    """Seconds until the workers that have not left are deleted; None if no worker has left yet."""
    ends = [pod.main.finished_at for pod in pods if worker_state(pod) is WorkerState.YIELDED]
    first = min((end for end in ends if end is not None), default=None)
    return None if first is None else max(0.0, first + STRAGGLER_SECONDS - now)


def with_reported_step(outcome: RunOutcome, pods: Iterable[PodView]) -> RunOutcome:
    """The outcome with the step at which rank 0 left, once its pod reports it."""
    if outcome.step is not None:
        return outcome
    first = next((pod for pod in pods if pod.rank == 0), None)
    step = None if first is None else reported_step(first)
    if first is None or step is None:
        return outcome
    message = termination_message(first)
    told = {
        "save_seconds": _seconds(message, "save_seconds", _LONGEST_SAVE),
        "trained_seconds": _seconds(message, "trained_seconds", _LONGEST_TRAINING),
        "ended_early": _text(message, "ended_early"),
    }
    return outcome.model_copy(update={"step": step, **told})


def killed_before_checkpoint(
    outcome: RunOutcome, pods: Iterable[PodView], progress: Progress, seconds: float
) -> RunOutcome:
    """The outcome of a run that was stopped after its lease.

    If a worker with the library was killed before it reported a written checkpoint, the run has lost steps. It has not
    failed, because the scheduler ended it. `seconds` is the time that it had. The outcome records it as `save_seconds`,
    and the next run gets more time.
    """
    late = reason_of(outcome).reason is Reason.LEASE_OVER
    if not late or not any(pod.main.exit_code == _KILLED and not termination_message(pod) for pod in pods):
        return outcome
    kept = progress.checkpoint_steps
    facts = {"seconds": round(seconds), "lost": max(0, progress.steps - kept), "kept": kept}
    finding = say(Reason.CHECKPOINT_NOT_WRITTEN, run=outcome.run, **facts)
    ended = _outcome(outcome.run, "Yielded", finding, _KILLED)
    return ended.model_copy(update={"save_seconds": round(max(0.0, seconds), 3)})


def reported_step(pod: PodView) -> int | None:
    """The step in the library's termination message; None where there is no such message, or no job has the step."""
    step = termination_message(pod).get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step <= MOST_STEPS else None


def _seconds(message: Mapping[str, Any], field: str, most: float) -> float | None:
    seconds = message.get(field)
    return seconds if isinstance(seconds, float) and 0 <= seconds <= most else None


def _left(run: int, found: Mapping[int, PodView], states: Mapping[int, WorkerState], now: float) -> RunOutcome | None:
    if not states:
        return None
    if all(state is WorkerState.SUCCEEDED for state in states.values()):
        return _succeeded(run, found[0])
    wait = straggler_wait(found.values(), now)
    if all(state.left for state in states.values()) or wait == 0.0:
        return _outcome(run, "Yielded", _how_it_left(run, found[0]), found[0].main.exit_code)
    return None


def _how_it_left(run: int, first: PodView) -> Finding:
    step, why = reported_step(first), _text(termination_message(first), "unsaved")
    if step is not None and why is not None:
        return say(Reason.LEFT_UNSAVED, run=run, step=step, why=why, pod=first.name)
    return say(Reason.WORKERS_LEFT, run=run, step="" if step is None else f" after step {step}")


def _succeeded(run: int, first: PodView) -> RunOutcome:
    early, step = _text(termination_message(first), "ended_early"), reported_step(first)
    if early is None or step is None:
        return _outcome(run, "Succeeded", say(Reason.WORKERS_SUCCEEDED, run=run), exit_code=0)
    return _outcome(run, "Succeeded", say(Reason.ENDED_EARLY, run=run, step=step, why=early), 0)


def _text(message: Mapping[str, Any], field: str) -> str | None:
    """What the library says there; None if it says nothing."""
    text = message.get(field)
    return text[:LONGEST_EARLY] if isinstance(text, str) and text else None


def _lost_with_node(
    run: int, found: Mapping[int, PodView], states: Mapping[int, WorkerState], cluster: ClusterView
) -> RunOutcome | None:
    for rank, pod in sorted(found.items()):
        if states[rank] is not WorkerState.FAILED and pod.node and cluster.lost(pod.node):
            problem = f"node {pod.node} does not report"
            return _outcome(run, "Evicted", say(Reason.WORKER_LOST, run=run, rank=rank, problem=problem))
    return None


def _failed(run: int, pod: PodView) -> RunOutcome:
    main = pod.main
    if main.reason == "OOMKilled":
        memory = format_bytes(pod.requests.memory_bytes)
        finding = say(Reason.OUT_OF_MEMORY, run=run, rank=pod.rank, memory=memory)
    elif main.reason in _NEVER_RAN or main.exit_code is None:
        problem = pod.init_failure or main.message or main.reason
        finding = say(Reason.WORKER_NOT_STARTED, run=run, rank=pod.rank, problem=problem)
    elif (function := _checkpoint(pod)) is not None:
        facts: dict[str, object] = {"function": function[0], "problem": function[1], "pod": pod.name}
        finding = say(Reason.CHECKPOINT_FAILED, run=run, rank=pod.rank, **facts)
    else:
        # the pod itself has a reason if its own deadline ended it
        message = pod.message or pod.reason or (main.reason if main.reason != "Error" else "")
        problem = f" ({message})" if message else ""
        facts = {"exit_code": main.exit_code, "problem": problem, "pod": pod.name}
        finding = say(Reason.WORKER_FAILED, run=run, rank=pod.rank, **facts)
    return _outcome(run, "Failed", finding, main.exit_code)


def _failed_on(
    found: Mapping[int, PodView], states: Mapping[int, WorkerState], failed: int, *, alone: bool
) -> list[str]:
    """The nodes of the workers that failed first. The others of a gang fail because these did."""
    first = found[failed]
    if first.main.reason == "OOMKilled":
        return []  # its own limit, which it has on every node
    if alone or first.main.finished_at is None:
        return [first.node]
    ends = {
        rank: pod.main.finished_at
        for rank, pod in found.items()
        if states[rank] is WorkerState.FAILED and pod.main.finished_at is not None
    }
    earliest = min(ends.values())
    return sorted({found[rank].node for rank, end in ends.items() if end == earliest})


def _on(outcome: RunOutcome, nodes: Iterable[str]) -> RunOutcome:
    """The outcome with the nodes on which it failed. A lost node is Kubernetes' to report."""
    lost = reason_of(outcome).reason is Reason.WORKER_LOST
    failed_on = [] if lost else [node for node in nodes if node][:MOST_FAILED_ON]
    return outcome.model_copy(update={"failed_on": failed_on}) if failed_on else outcome


def _checkpoint(pod: PodView) -> tuple[str, str] | None:
    """The checkpoint function that raised in the worker, and its error, from the library's termination message."""
    message = termination_message(pod)
    if message.get("outcome") != "failed" or not message.get("function"):
        return None
    return str(message["function"]), str(message.get("error") or "an exception")


def _loss(pod: PodView) -> str:
    if pod.disruption:
        return pod.disruption
    if pod.deleting:
        return "its pod was deleted"
    return pod.message or pod.reason or pod.main.reason or "its end is not known"


def _first(states: Mapping[int, WorkerState], wanted: WorkerState) -> int | None:
    return min((rank for rank, state in states.items() if state is wanted), default=None)


def _outcome(run: int, outcome: str, finding: Finding, exit_code: int | None = None) -> RunOutcome:
    return RunOutcome.model_validate(
        {"run": run, "outcome": outcome, "exit_code": exit_code, "reason": reason_text(finding)}
    )
