"""Jobs in messages: whole again on the other side, with each list of nodes and each matrix once."""

import msgspec
from hypothesis import given

from support.planner.snapshots import snapshots
from synergy_core.model import snapshot as core
from synergy_extender.snapshot.sent_jobs import SentJobs, received, sent

NODES = tuple(f"node-{index:04}" for index in range(500))


def over_the_wire(message: SentJobs) -> SentJobs:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=SentJobs)


@given(snapshots())
def test_jobs_come_whole_and_in_order(snapshot: core.Snapshot) -> None:
    assert received(over_the_wire(sent(snapshot.jobs))) == snapshot.jobs


def test_no_nodes_are_not_all_nodes() -> None:
    jobs = tuple(core.Job(name=name, gpus=1, nodes=nodes) for name, nodes in (("none", ()), ("all", None)))
    assert received(over_the_wire(sent(jobs))) == jobs


def test_a_list_of_nodes_is_sent_once_and_is_one_object_for_all_jobs_also_of_later_messages() -> None:
    few, many = ([core.Job(name=f"j{i}", gpus=1, nodes=(*NODES,)) for i in range(n)] for n in (1, 200))
    one, other = (msgspec.msgpack.encode(sent(jobs)) for jobs in (few, many))
    assert one.count(b"node-0250") == other.count(b"node-0250") == 1
    first, second = (received(msgspec.msgpack.decode(message, type=SentJobs)) for message in (one, other))
    assert {id(job.nodes) for job in (*first, *second)} == {id(first[0].nodes)}


def test_equal_matrices_are_one_object() -> None:
    matrices = [{"V100": core.Profile(cpu_millis=(1000,), memory_bytes=(1,), steps_per_s=((1.0,),))} for _ in range(2)]
    jobs = [core.Job(name=f"j{index}", gpus=1, profiles=matrix) for index, matrix in enumerate(matrices)]
    one, other = received(over_the_wire(sent(jobs)))
    assert one.profiles == matrices[0]
    assert one.profiles is other.profiles
