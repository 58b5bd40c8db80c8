"""A decision looks at few jobs, and decides what it would if it looked at all."""

from dataclasses import replace
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, cluster, job, node_object, share, worker
from support.extender.deciding import MID_ROUND, ROUNDS, decided, plan
from support.extender.happenings import EVENT, Event, World, without_rest
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Estimate, IsolatedTime, Plan
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.plan import plan as planned
from synergy_extender.cluster.jobs.unstarted import Unstarted
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.concerned import KnownPlaces, concerned
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, Stances
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.planning.skipped_fill import FillSignatures
from synergy_extender.rounds import Moment
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.snapshot import build_snapshot

Step = tuple[Event, Mode | Literal["none"], str, bool]
"""What happens; which plan is made; what it says of running jobs; whether what is decided is written."""
STEPS = st.lists(
    st.tuples(
        EVENT,
        st.sampled_from(["round", "round", "fill", "none"]),
        st.sampled_from(["", "", "isolated", "isolated", "estimates"]),
        st.sampled_from([True, True, False]),
    ),
    min_size=8,
    max_size=20,
)


@given(STEPS)
def test_it_decides_what_it_would_if_it_looked_at_all_jobs(steps: list[Step]) -> None:
    world, known, places = World(), KnownSnapshot(), KnownPlaces()
    unstarted, among_all = Unstarted(), Unstarted()
    signatures, reserved = FillSignatures(), dict[Key, core.Allocation]()
    for event, mode, tells, writes in steps:
        world.happens(event)
        state, moment = world.state(), Moment(world.now, ROUNDS, ROUNDS.at(world.now) + 1)
        result: PlanResult | None = None
        if mode != "none":
            result = _planned(state, mode, moment, known=known, signatures=signatures, reserved=reserved, tells=tells)
        more: dict[str, Any] = {"reserved": reserved, "unstarted_since": unstarted.since, "counted": ["uid-a"]}
        more |= {"granted_since": unstarted.granted_since, "freed_at": unstarted.freed_at}
        found = decide(state, moment, result, AssumedBindings(), **more, known=places)
        anew = decide(without_rest(state), moment, result, AssumedBindings(), **more)
        assert [replace(one, job=anew.changes[at].job) for at, one in enumerate(found.changes)] == anew.changes
        assert found.reserved == anew.reserved
        reserved = dict(found.reserved)
        unstarted.note(state.jobs.values(), state.pods, AssumedBindings(), world.now)
        among_all.note(without_rest(state).jobs.values(), state.pods, AssumedBindings(), world.now)
        assert unstarted.since == among_all.since
        assert (unstarted.granted_since, unstarted.freed_at) == (among_all.granted_since, among_all.freed_at)
        if writes:
            world.written(found.changes)


def _planned(
    state: ClusterState,
    mode: Mode,
    moment: Moment,
    *,
    known: KnownSnapshot,
    signatures: FillSignatures,
    reserved: dict[Key, core.Allocation],
    tells: str,
) -> PlanResult:
    built = build_snapshot(state, mode=mode, now=moment.now, round_s=20, reserved=reserved, known=known)
    assert signatures.of(built, PolicyInForce()) == FillSignatures().of(built, PolicyInForce())
    made = _as_asked(planned(built.snapshot, PlanConfig(policy="fifo", mode=mode)), built.base, tells=tells)
    return PlanResult(made, mode, Stances(state.jobs, moment.now), built.refused, built.entitled)


def _as_asked(made: Plan, base: core.Snapshot, *, tells: str) -> Plan:
    """The plan with the places that stay as the objects that the question had; it `tells` something of all running
    jobs."""
    held = {one.name: one.running for one in base.jobs if one.running is not None}
    same = tuple(held[one.job] if held.get(one.job) == one else one for one in made.allocations)
    made = replace(made, allocations=same)
    if tells == "isolated":
        return replace(made, isolated=tuple(IsolatedTime(name, 5.0, 2.0) for name in held))
    if tells == "estimates":
        told = tuple(Estimate(job=name, gpu_type="V100", steps_per_s=2.0, reference="") for name in held)
        return replace(made, estimates=told)
    return made


def test_a_run_whose_place_the_plan_leaves_is_not_looked_at_again() -> None:
    held = {"phase": "Running", "allocation": allocation(share("n1"), stepsPerSecond=2.0)}
    state = cluster([node_object("n1")], [job("j", status=held), job("k")], [worker(node="n1", gpus=1)])
    known, places = KnownSnapshot(), KnownPlaces()
    looked = []
    for _ in range(3):
        built = build_snapshot(state, mode="fill", now=NOW, round_s=20, known=known)
        made = plan(*(one.running for one in built.base.jobs if one.running is not None))
        result = PlanResult(made, "fill", Stances(state.jobs, NOW), built.refused, built.entitled)
        places.begin(state.capacities)
        looked.append([one.key.name for one in concerned(state, result, places, unstarted=(), counted=())])
        assert decide(state, MID_ROUND, result, AssumedBindings(), known=places).changes == []
    assert looked == [["j", "k"], ["k"], ["k"]]


def test_what_was_found_on_other_nodes_does_not_count() -> None:
    """A node whose GPUs are shared from now on gives devices."""
    places, view = KnownPlaces(), job("j", status={"phase": "Running", "allocation": allocation(share("n1"))})
    place = core.Allocation(job="team/j", gpu_type="V100", workers=())
    state = cluster([node_object("n1")], [view])
    places.begin(state.capacities)
    places.note(view, place)
    assert places.stays(state.jobs, [place]) == {view.key}
    places.begin(cluster([node_object("n1", gpus=4)]).capacities)
    assert places.stays(state.jobs, [place]) == set()


def test_jobs_without_a_draft_keep_the_room_that_their_pods_do_not_hold_yet() -> None:
    held = {"phase": "Running", "allocation": allocation(share("n1", gpus=8))}
    waits = {"allocation": allocation(share("n1", gpus=1), run=1, admitted=False)}
    state = cluster([node_object("n1")], [job("j", gpus=8, status=held), job("k", status=waits)])
    assert decided(state, MID_ROUND).changes == []


def test_a_run_of_which_the_plan_says_something_is_looked_at_though_its_place_is_known() -> None:
    held = {"phase": "Running", "allocation": allocation(share("n1"), stepsPerSecond=2.0)}
    state, places = cluster([node_object("n1")], [job("j", status=held)], [worker(node="n1", gpus=1)]), KnownPlaces()
    (asked,) = build_snapshot(state, mode="round", now=NOW, round_s=20).base.jobs
    assert asked.running is not None
    made, told = plan(asked.running), Estimate(job="team/j", gpu_type="V100", steps_per_s=2.0, reference="")
    for expected, one in (
        (0, made),
        (0, made),
        (1, replace(made, isolated=(IsolatedTime("team/j", 5.0, 2.0),))),
        (1, replace(made, estimates=(told,))),
        (1, replace(made, promoted=("team/j",))),
        (1, replace(made, allocations=())),
    ):
        result = PlanResult(one, "round", Stances(state.jobs, MID_ROUND.now))
        assert len(decide(state, MID_ROUND, result, AssumedBindings(), known=places).changes) == expected, one
        decide(state, MID_ROUND, PlanResult(made, "round", result.stances), AssumedBindings(), known=places)
