"""Which jobs wait, who has the GPUs, and who has had them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import GI, NOW, allocation, job_object, node_object, share
from synergy_api.cluster.pools import node_capacities
from synergy_api.timestamps import format_time
from synergy_view.queue import queue, waited
from synergy_view.seen import SeenJob, read
from synergy_view.top import gpu_hours, top
from synergy_view.usage import usage
from synergy_view.why import why
from synergy_view.words import ahead, count, cpus, duration, gib, listed, printable


def seen(name: str, **more: Any) -> SeenJob:
    return read(job_object(name, **more))


def waits(position: int, reason: str = "NoFreeGPU") -> dict[str, Any]:
    return {"queue": {"position": position, "reason": reason, "message": "words"}}


def test_the_queue_is_in_the_order_of_positions_then_what_is_not_planned() -> None:
    jobs = [
        seen("second", status=waits(2)),
        seen("held", spec={"suspend": True}, status={"phase": "Suspended"}),
        seen("first", status=waits(1)),
        seen("runs", status={"phase": "Running", "allocation": allocation(share("n1"))}),
        seen("done", status={"phase": "Succeeded"}),
        seen("goes", status=waits(3), deletionTimestamp=format_time(NOW)),
    ]
    rows = queue(jobs, NOW)
    assert [(row.job, row.position, row.reason) for row in rows] == [
        ("first", 1, "NoFreeGPU"),
        ("second", 2, "NoFreeGPU"),
        ("held", None, "Suspended"),
    ]


def test_an_array_waits_for_nothing_and_wants_no_gpus() -> None:
    condition = {"type": "Running", "status": "True", "reason": "MembersOpen", "message": "1 runs",
                 "lastTransitionTime": format_time(NOW), "observedGeneration": 1}  # fmt: skip
    array = seen("sweep", spec={"array": {"count": 3}}, status={"phase": "Running", "conditions": [condition]})
    member = seen("sweep-0", status=waits(1))
    assert [row.job for row in queue([array, member], NOW)] == ["sweep-0"]
    picture = top([array, member], [], NOW)
    assert [(row.tenant, row.waiting, row.gpus_wanted) for row in picture.tenants] == [("team", 1, 1)]
    answer = why(array, [member], NOW)
    assert (answer.reason, answer.message, answer.ahead) == ("MembersOpen", "1 runs", ())


def test_the_time_that_a_job_has_waited_is_without_its_runs_and_suspensions() -> None:
    service = {"receivedSeconds": {"V100": 30.0, "T4": 10.0}, "suspendedSeconds": 20.0}
    assert waited(seen("j", status={"service": service}), NOW) == 100 - 60
    assert waited(seen("j"), NOW) == 100


def test_types_nodes_jobs_and_tenants() -> None:
    nodes = [node_object("n1", gpus=8, cpu=24, memory_gib=96), node_object("n2", gpus=4, gpu_type="T4")]
    held = allocation(share("n1", gpus=4, cpu_millis=12_000, memory_bytes=48 * GI), stepsPerSecond=3.0,
                      proportionalStepsPerSecond=2.0)  # fmt: skip
    service = {"attainedGPUSeconds": 3600.0, "runningSince": format_time(NOW - 900)}
    jobs = [
        seen("runs", gpus=4, status={"phase": "Running", "allocation": held, "service": service}),
        seen("any", gpus=2, status=waits(1)),
        seen("picky", gpus=3, spec={"gpuTypes": ["T4"], "tenant": "vision"}, status=waits(2)),
        seen("done", status={"phase": "Succeeded", "service": {"attainedGPUSeconds": 7200.0}}),
    ]
    picture = top(jobs, node_capacities(nodes, []), NOW)
    types = [(row.gpu_type, row.nodes, row.gpus, row.gpus_given, row.gpus_wanted) for row in picture.types]
    assert types == [("T4", 1, 4, 0, 5), ("V100", 1, 8, 4, 2)]
    first = picture.nodes[0]
    assert (first.node, first.gpus_given, first.cpu_millis_given, first.jobs) == ("n1", 4, 12_000, ("team/runs",))
    assert (first.cpu_millis, first.memory_bytes, first.open_to_new) == (24_000, 96 * GI, True)
    assert [(row.job, row.gain, row.nodes) for row in picture.jobs] == [("team/runs", 1.5, 1)]
    tenants = {row.tenant: row for row in picture.tenants}
    team = tenants["team"]
    assert (team.running, team.waiting, team.gpus_given, team.gpus_wanted, team.gpu_hours) == (1, 1, 4, 2, 4.0)
    assert (tenants["vision"].running, tenants["vision"].gpus_wanted) == (0, 3)


def test_without_nodes_the_types_are_those_that_jobs_hold() -> None:
    held = seen("runs", status={"phase": "Running", "allocation": allocation(share("n1"))})
    picture = top([held], [], NOW)
    assert [(row.gpu_type, row.gpus, row.gpus_given) for row in picture.types] == [("V100", 0, 1)]
    assert picture.nodes == ()


def test_a_released_allocation_holds_nothing() -> None:
    assert seen("j", status={"allocation": allocation(share("n1"), state="Released")}).gpus_held == 0


def test_usage_is_by_tenant_and_namespace_and_the_gain_by_gpus() -> None:
    fast = allocation(share("n1", gpus=3), stepsPerSecond=2.0, proportionalStepsPerSecond=1.0)
    even = allocation(share("n1"), stepsPerSecond=1.0, proportionalStepsPerSecond=1.0)
    jobs = [
        seen("fast", gpus=3, status={"phase": "Running", "allocation": fast}),
        seen("even", status={"phase": "Running", "allocation": even}),
        seen("done", status={"phase": "Failed", "service": {"attainedGPUSeconds": 1800.0}}),
        seen("v", spec={"tenant": "vision"}, status=waits(1)),
    ]
    team, vision = usage(jobs, NOW)
    assert (team.tenant, team.jobs, team.finished, team.gpu_hours, team.gain) == ("team", 3, 1, 0.5, 1.75)
    assert (vision.tenant, vision.gain, vision.waiting_hours) == ("vision", None, 100 / 3600)


def test_gpu_hours_count_the_open_run() -> None:
    service = {"attainedGPUSeconds": 3600.0, "runningSince": format_time(NOW - 1800)}
    assert gpu_hours(seen("j", gpus=2, status={"service": service}), NOW) == 2.0
    assert gpu_hours(seen("j"), NOW) == 0.0


def test_words() -> None:
    assert [ahead(s) for s in (-5, 0.5, 45, 750)] == ["now", "now", "in 45s", "in 12m"]
    told = [duration(s) for s in (0, 45, 119, 120, 125, 750, 3600, 12_000, 40_000, 187_200, 10**6)]
    assert told == ["0s", "45s", "119s", "2m", "2m5s", "12m", "1h", "3h20m", "11h", "2d4h", "11d"]
    assert (count(1, "GPU"), count(3, "GPU"), count(0, "entry", "entries")) == ("1 GPU", "3 GPUs", "0 entries")
    assert (cpus(1500), cpus(24_000), cpus(128_000), gib(3 << 29), gib(500 << 30)) == (
        "1.5",
        "24",
        "128",
        "1.5Gi",
        "500Gi",
    )
    assert (listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])) == ("a, b", "a, b, c and 2 more")


def test_what_a_terminal_would_obey_becomes_an_escape() -> None:
    marks = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
    obeyed = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *marks)]
    assert [one for one in obeyed if not printable(one).isascii() or not printable(one).isprintable()] == []
    assert printable("a\x1b]0;b\x07\r\n\t\x9b2J\u202e") == r"a\x1b]0;b\x07\r\n\t\x9b2J\u202e"
    assert printable(" Größe 3 µs, ██ \\x1b") == " Größe 3 µs, ██ \\x1b"


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_longer_time_is_never_told_as_a_shorter_one(one: float, other: float) -> None:
    def least(text: str) -> int:
        units = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
        total, number = 0, ""
        for character in text:
            if character.isdigit():
                number += character
            else:
                total, number = total + int(number) * units[character], ""
        return total

    short, long = sorted((one, other))
    assert least(duration(short)) <= least(duration(long))
    assert least(duration(long)) <= round(long)


def test_the_queue_and_the_reason_have_the_estimated_start() -> None:
    times = {"estimatedStart": format_time(NOW + 60), "estimatedStartBy": format_time(NOW + 90)}
    waiting = seen("j", status={"queue": {**waits(1)["queue"], **times}})
    (row,) = queue([waiting], NOW)
    answer = why(waiting, (), NOW)
    assert (row.start_s, row.start_by_s) == (answer.start_s, answer.start_by_s) == (NOW + 60, NOW + 90)
    (unknown,) = queue([seen("k", status=waits(1))], NOW)
    assert (unknown.start_s, unknown.start_by_s) == (None, None)
    running = seen("r", status={"allocation": allocation(share("n1")), "queue": {**waits(1)["queue"], **times}})
    assert why(running, (), NOW).start_s is None
