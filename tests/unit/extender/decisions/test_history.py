"""The history of finished jobs' service: each is counted once, whoever stops between which two writes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from support.extender.cluster import NOW, cluster, job_object, node_object
from synergy_api.parts.queues import Queues, ServiceHistory
from synergy_core.model.service_sketch import LAST, MOST, bucket
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.history import LEARN_FROM, PENDING_AT_ONCE, service_samples, thresholds, updated
from synergy_extender.planning.policy import PolicyInForce, history_of, plan_config, policy_in_force
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.writing.writer import body_of

QUEUES = Queues()
LEARNS = Queues(thresholds_gpu_seconds=[60.0, 3600.0], learn_thresholds=True)
ROUNDS = Rounds(20)


def finished(name: str, service: float, **status: Any) -> dict[str, Any]:
    return job_object(name, status={"phase": "Succeeded", "service": {"attainedGPUSeconds": service}, **status})


def told(items: dict[str, dict[str, Any]], history: ServiceHistory | None) -> dict[str, dict[str, Any]]:
    """The jobs after a pass of the leader has told those that are counted."""
    state = cluster([node_object("n1")], [read_job(item) for item in items.values()])
    pending = history.pending if history is not None else ()
    after = dict(items)
    for change in decide(state, Moment(NOW, ROUNDS, ROUNDS.at(NOW)), None, AssumedBindings(), counted=pending).changes:
        name = change.job.key.name
        after[name] = {**items[name], "status": {**items[name]["status"], **body_of(change.job, change)["status"]}}
    return after


def views(items: dict[str, dict[str, Any]]) -> list[JobView]:
    return [read_job(item) for item in items.values()]


def test_a_job_is_counted_told_and_forgotten() -> None:
    items = {"a": finished("a", 100.0), "b": finished("b", 7.0, phase="Failed"), "runs": job_object("runs")}
    history = updated(None, views(items), QUEUES)
    assert history is not None
    assert (history.jobs, history.pending) == (2, ["uid-a", "uid-b"])
    assert history.buckets == [bucket(7.0), bucket(100.0)]
    items = told(items, history)
    assert [item["status"].get("marks", {}).get("counted") for item in items.values()] == [True, True, None]
    after = updated(history, views(items), QUEUES)
    assert after is not None
    assert (after.jobs, after.counts, after.pending) == (2, [1, 1], [])
    assert updated(after, views(items), QUEUES) == after


def test_what_never_ran_or_is_not_over_is_not_counted() -> None:
    never = finished("never", 0.0)
    assert updated(None, [read_job(never), read_job(job_object("waits"))], QUEUES) is None


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["finish", "count", "count and stop", "tell", "delete", "start anew"]), max_size=30))
def test_none_is_lost_or_counted_twice_whoever_stops_when(steps: list[str]) -> None:
    """`count and stop` is a leader that writes the policy's status and dies; what it remembers goes with it, and the
    next reads both objects again. One that dies before its write leaves nothing."""
    items: dict[str, dict[str, Any]] = {}
    stored: ServiceHistory | None = None
    made = 0
    for step in [*steps, "count", "tell", "count"]:
        if step == "finish":
            items[f"j{made}"] = finished(f"j{made}", 1.0 + made)
            made += 1
        elif step.startswith("count"):
            written = updated(stored, views(items), QUEUES)
            stored = None if written is None else ServiceHistory.model_validate(written.to_wire())
        elif step == "tell":
            items = told(items, stored)
        elif step == "delete" and items:
            name = min(items)
            if stored is not None and f"uid-{name}" in stored.pending:
                del items[name]
    assert (stored.jobs if stored is not None else 0) == made
    assert sum(stored.counts if stored is not None else []) == made
    assert stored is None or stored.pending == []


def test_many_at_once_are_counted_in_turns() -> None:
    items = {f"j{n}": finished(f"j{n}", 5.0) for n in range(PENDING_AT_ONCE + 10)}
    first = updated(None, views(items), QUEUES)
    assert first is not None
    assert (first.jobs, len(first.pending)) == (PENDING_AT_ONCE, PENDING_AT_ONCE)
    assert updated(first, views(items), QUEUES) == first, "nobody knows yet"
    second = updated(first, views(told(items, first)), QUEUES)
    assert second is not None
    assert (second.jobs, len(second.pending)) == (PENDING_AT_ONCE + 10, 10)


def test_thresholds_are_learned_once_enough_have_finished_and_as_many_as_are_written() -> None:
    few = updated(None, views({str(n): finished(str(n), 10.0 + n) for n in range(LEARN_FROM - 1)}), LEARNS)
    assert thresholds(LEARNS, few) == (60.0, 3600.0)
    items = {str(n): finished(str(n), (10.0, 900.0, 80_000.0)[n % 3] + n) for n in range(LEARN_FROM + 1)}
    history = updated(None, views(items), LEARNS)
    assert history is not None
    learned = history.learned_thresholds_gpu_seconds
    assert len(learned) == 2
    assert thresholds(LEARNS, history) == tuple(learned) != (60.0, 3600.0)
    assert thresholds(Queues(), history) == (3600.0, 36000.0), "not asked to learn"
    one = updated(history, views(items), Queues(thresholds_gpu_seconds=[3600.0], learn_thresholds=True))
    assert one is not None
    assert len(one.learned_thresholds_gpu_seconds) == 1, "learned anew for another number of queues"
    off = updated(history, views(items), QUEUES)
    assert off is not None
    assert off.learned_thresholds_gpu_seconds == []


def test_the_planner_is_given_the_history_of_the_policy_s_status() -> None:
    services = {str(number): 100.0 if number else 9.0 for number in range(LEARN_FROM)}
    history = updated(None, views({name: finished(name, service) for name, service in services.items()}), QUEUES)
    assert history is not None
    written = {
        "metadata": {"name": "default"},
        "spec": {"policy": "2d-gittins"},
        "status": {"history": history.to_wire()},
    }
    policy = policy_in_force(written, PolicyInForce())
    assert policy.history == history
    assert plan_config(policy, "round").queues.service_gpu_s == service_samples(history)
    assert service_samples(history) == pytest.approx((9.0, *[100.0] * (LEARN_FROM - 1)), rel=0.05)
    las = policy_in_force({**written, "spec": {"policy": "2d-las"}}, PolicyInForce())
    assert plan_config(las, "round").queues.service_gpu_s == ()
    invalid = policy_in_force({**written, "spec": {"policy": "whim"}}, policy)
    assert (invalid.history, invalid.spec) == (history, policy.spec)


def test_few_finished_jobs_are_no_distribution() -> None:
    few = updated(None, views({str(n): finished(str(n), 9.0) for n in range(LEARN_FROM - 1)}), QUEUES)
    assert few is not None
    assert few.jobs == LEARN_FROM - 1
    assert service_samples(few) == service_samples(None) == ()


@pytest.mark.parametrize(
    ("buckets", "counts", "problem"),
    [
        ([100_000], [1], "less than or equal to"),
        ([-1], [1], "greater than or equal to"),
        ([7, 7], [1, 1], "must ascend, each value once"),
        ([8, 7], [1, 1], "must ascend, each value once"),
        ([7], [10**400], "less than or equal to"),
    ],
)
def test_buckets_that_there_are_not_are_refused(buckets: list[int], counts: list[int], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ServiceHistory(jobs=LEARN_FROM, buckets=buckets, counts=counts)
    written = {"metadata": {"name": "default"}, "status": {"history": {"buckets": buckets, "counts": counts}}}
    assert history_of(written) is None, "it is begun anew"


def test_the_largest_history_can_be_planned_with() -> None:
    whole = ServiceHistory(jobs=LEARN_FROM, buckets=list(range(LAST + 1)), counts=[MOST] * (LAST + 1))
    assert len(service_samples(ServiceHistory.model_validate(whole.to_wire()))) == 1000


def test_a_history_that_makes_no_sense_is_begun_anew() -> None:
    with pytest.raises(ValidationError, match="counts must be as many as buckets"):
        ServiceHistory(buckets=[1, 2], counts=[1])
    written = {"metadata": {"name": "default"}, "spec": {}, "status": {"history": {"buckets": [1], "counts": []}}}
    assert policy_in_force(written, PolicyInForce()) == PolicyInForce()
