"""Whatever the kubelet answers, and in whatever order all parts get their turn: no node is ever over-allocated."""

import copy
from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.operator.resizing_world import Cluster
from synergy_api.amounts import NOTHING
from synergy_operator.run.size_limits import RETRY_SECONDS, ROOM_SECONDS

JOBS = {"a": 1, "b": 1, "gang": 2}


class Trade(RuleBasedStateMachine):
    """Jobs that come and go on one node; each is faster with more CPU and memory, together they want more than it has.

    Extender, operator and kubelet take turns in any order, each on what it sees then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(**JOBS)
        self.there: set[str] = set()

    @initialize(there=st.sets(st.sampled_from(sorted(JOBS)), min_size=1))
    def begin(self, there: set[str]) -> None:
        for name in sorted(there):
            self.come(name)
        self.calm()

    # the users

    @precondition(lambda self: len(self.there) < len(JOBS))
    @rule(data=st.data())
    def somebody_comes(self, data: st.DataObject) -> None:
        self.come(data.draw(st.sampled_from(sorted(JOBS.keys() - self.there))))
        self.cluster.plan("fill")

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def somebody_goes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.there)))
        self.there.remove(name)
        self.suspend(name, suspend=True)
        self.cluster.plan("fill")
        self.cluster.go()

    @rule(name=st.sampled_from(sorted(JOBS)), cpu=st.sampled_from([2, 12]), gib=st.sampled_from([4, 24]))
    def somebody_wants_less_or_more(self, name: str, cpu: int, gib: int) -> None:
        most = {"max": {"cpu": str(cpu), "memory": f"{gib}Gi"}}
        self.cluster.worlds[name].edit(lambda spec: spec.update(resources=most))
        self.next_round()

    def come(self, name: str) -> None:
        self.there.add(name)
        self.suspend(name, suspend=False)

    def suspend(self, name: str, *, suspend: bool) -> None:
        world = self.cluster.worlds[name]
        world.edit(lambda spec: spec.update(suspend=suspend))
        world.settle()

    # extender, operator, kubelet

    @rule()
    def next_round(self) -> None:
        self.cluster.wait(20)
        self.cluster.plan("round")

    @rule()
    def fill(self) -> None:
        self.cluster.plan("fill")

    @rule(turns=st.lists(st.sampled_from([*sorted(JOBS), "fill", "kubelet"]), min_size=4, max_size=12), data=st.data())
    def take_turns(self, turns: list[str], data: st.DataObject) -> None:
        for who in turns:
            if who == "fill":
                self.fill()
            elif who == "kubelet" and self.cluster.running():
                pod = data.draw(st.sampled_from(self.cluster.running()))
                self.cluster.look(pod, "granted", memory_in_use=False)
            elif who in JOBS:
                self.cluster.worlds[who].settle()
                self.cluster.bring_up()
            self.no_node_is_over_allocated()

    @rule(data=st.data(), infeasible=st.booleans(), memory_in_use=st.booleans())
    def kubelet(self, data: st.DataObject, infeasible: bool, memory_in_use: bool) -> None:
        for pod in data.draw(st.permutations(self.cluster.running())):
            answer = "infeasible" if infeasible and data.draw(st.booleans()) else "granted"
            self.cluster.look(pod, answer, memory_in_use=memory_in_use and data.draw(st.booleans()))
            self.no_node_is_over_allocated()
            if data.draw(st.booleans()):
                break

    @rule(seconds=st.sampled_from([ROOM_SECONDS, RETRY_SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.cluster.wait(seconds)

    def teardown(self) -> None:
        self.calm()  # what was refused last is learned
        self.cluster.wait(RETRY_SECONDS)
        self.calm()
        for name, world in self.cluster.worlds.items():
            allocation = world.status.allocation
            if allocation is not None and allocation.state == "Granted":
                assert allocation.admitted, name
                assert allocation.planned == [], name
                assert world.reason("ResourcesAsPlanned") == "AsPlanned", name

    def calm(self) -> None:
        """A kubelet that does what it is asked to, for some rounds."""
        for _ in range(3):
            settle(self.cluster)

    @invariant()
    def no_node_is_over_allocated(self) -> None:
        assert self.cluster.over_allocated() == NOTHING


Trade.TestCase.settings = settings(max_examples=10, stateful_step_count=15, suppress_health_check=list(HealthCheck))
TestTrade = Trade.TestCase


def settle(cluster: Cluster) -> None:
    """A round, with a kubelet that does what it is asked to."""
    cluster.wait(20)
    cluster.plan("round")
    for _ in range(4):
        for world in cluster.worlds.values():
            world.settle()
        cluster.bring_up()
        for pod in cluster.running():
            cluster.look(pod, "granted", memory_in_use=False)
        cluster.go()
        assert cluster.over_allocated() == NOTHING
        cluster.plan("fill")


@cache
def two_jobs() -> Cluster:
    """Two jobs that share the node, of which one has just lost most of its CPU and memory to the other by the plan."""
    cluster = Cluster(a=1, b=1)
    for name in ("a", "b"):
        cluster.worlds[name].edit(lambda spec: spec.update(suspend=False))
    for _ in range(2):
        settle(cluster)
    assert cluster.running() == ["a-1-0", "b-1-0"]
    cluster.worlds["a"].edit(lambda spec: spec.update(resources={"max": {"cpu": "2", "memory": "4Gi"}}))
    cluster.worlds["a"].settle()
    cluster.wait(20)
    cluster.plan("round")
    return cluster


TURNS = ("operator a", "operator b", "kubelet a", "kubelet b", "fill")


@settings(max_examples=60)
@given(turns=st.lists(st.sampled_from(TURNS), min_size=8, max_size=20), in_use=st.booleans())
def test_what_one_gives_the_other_takes_once_it_is_there(turns: list[str], in_use: bool) -> None:
    """In whatever order they look; the memory may be in use at first."""
    cluster = copy.deepcopy(two_jobs())
    had = cluster.has["b-1-0"]
    for turn in turns:
        who, _, name = turn.partition(" ")
        if who == "fill":
            cluster.plan("fill")
        elif who == "operator":
            cluster.worlds[name].settle()
        else:
            cluster.look(f"{name}-1-0", "granted", memory_in_use=in_use)
        assert cluster.over_allocated() == NOTHING
    settle(cluster)
    settle(cluster)
    has = cluster.has["b-1-0"]
    assert had.cpu_millis < has.cpu_millis == 9000
    assert had.memory_bytes < has.memory_bytes == 20 << 30
