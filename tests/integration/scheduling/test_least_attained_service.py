"""Tiresias' queues on a cluster: who came late and needs little overtakes, and nobody waits beyond the promotion bound.

Takes about a minute: rounds of 5 s, and a line of short jobs that would keep the long ones out for longer than that.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio

from support.on_cluster.jobs import fake_template, matrix, reaches, submit
from support.on_cluster.neighbours import label
from support.on_cluster.observer import Observer
from support.waiting import eventually
from synergy_api.timestamps import parse_time
from synergy_kube import KubeClient
from synergy_kube.resources import SCHEDULING_POLICIES, TRAINING_JOBS

pytestmark = pytest.mark.integration

GIB = 1 << 30
ROUND_S = 5
KNOB = 1.0
THRESHOLD_GPU_S = 20.0
LONG = ("long-a", "long-b")
Json = dict[str, Any]


@pytest_asyncio.fixture
async def node(kube: KubeClient) -> AsyncIterator[str]:
    """A fake node with 8 GPUs that only this test's jobs ask for."""
    name = "fake-t4-022"
    await label(kube, [name], pool="queues")
    yield name
    await label(kube, [name], pool=None)


def job(gpus: int, seconds: int) -> Json:
    """A job whose workers run for so long, if nobody deletes them."""
    template = fake_template(seconds)
    template["spec"] |= {"nodeSelector": {"pool": "queues"}, "terminationGracePeriodSeconds": 0}
    curve = {1000 * gpus: float(gpus), 3000 * gpus: float(gpus)}
    profile = {"mode": "Provided", "matrices": [matrix("T4", curve, gpus * GIB)]}
    return {
        "gpus": gpus,
        "steps": 100,
        "gpuTypes": ["T4"],
        "preemption": "Signal",
        "profile": profile,
        "template": template,
    }


async def test_a_short_job_overtakes_two_long_ones_which_come_back_within_the_promotion_bound(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]], node: str
) -> None:
    async def status_of(name: str) -> Json:
        found: Json = (await kube.get(TRAINING_JOBS, name, namespace)).get("status") or {}
        return found

    queues = {"thresholdsGPUSeconds": [THRESHOLD_GPU_S], "promoteKnob": KNOB}
    await policy(policy="2d-las", mechanism="tune", roundSeconds=ROUND_S, queues=queues)
    async with Observer(kube) as observer:
        for name in LONG:
            await submit(kube, namespace, name, **job(4, 3600))
        for name in LONG:
            await reaches(kube, namespace, name, "Running", seconds=60)

        async def fallen() -> bool:
            """Both have had what takes them to the second queue."""
            run = [await status_of(name) for name in LONG]
            return all((one.get("service") or {}).get("runningSince") for one in run)

        await eventually(fallen, seconds=20, what="both long jobs to run")
        shorts = [f"short-{number}" for number in range(6)]

        async def uncounted() -> list[str]:
            """What is missing: each finished job is in the history once, and its own status says so."""
            history = ((await kube.get(SCHEDULING_POLICIES, "default")).get("status") or {}).get("history") or {}
            finished = [await kube.get(TRAINING_JOBS, name, namespace) for name in shorts]
            if sum(history.get("counts", [])) < len(shorts):
                return [f"the history has {history}"]
            return [
                f"{one['metadata']['name']}: {one['status'].get('service')} {one['status'].get('marks')}"
                for one in finished
                if not (one["status"].get("marks") or {}).get("counted")
                or one["metadata"]["uid"] in history.get("pending", [])
            ]

        async def all_counted() -> bool:
            return not await uncounted()

        for name in shorts:
            await submit(kube, namespace, name, **job(8, 3))
        await reaches(kube, namespace, shorts[0], "Succeeded", seconds=90)
        displaced = [await status_of(name) for name in LONG]
        assert [one["service"]["preemptions"] for one in displaced] == [1, 1], "the short one took both places"

        async def back() -> bool:
            return [(await status_of(name))["allocation"]["run"] for name in LONG] == [2, 2]

        await eventually(back, seconds=120, what="both long jobs to be given places again")
        still = [name for name in shorts if (await status_of(name)).get("phase") != "Succeeded"]
        assert still, "they came back although short jobs were waiting"
        _came_back_in_time([await reaches(kube, namespace, name, "Running", seconds=60) for name in LONG])
        for name in shorts:
            await reaches(kube, namespace, name, "Succeeded", seconds=90)
        with suppress(AssertionError):
            await eventually(all_counted, seconds=90, what="each finished job to be in the history")
        assert await uncounted() == []
    assert observer.broken == []


def _came_back_in_time(found: list[Json]) -> None:
    """One by its promotion; so the other, or into what that one leaves, where no short job fits.

    The other's marks may then be none, or of a long wait before its first run.
    """
    by_promotion = [one for one in found if _marks(one).get("promotedGPUSeconds", 0) >= THRESHOLD_GPU_S]
    assert by_promotion
    for one in found:
        if one in by_promotion:
            _promoted_in_time(one)
        elif "promotedAt" in _marks(one):
            assert _marks(one)["promotedGPUSeconds"] == 0
            assert parse_time(_marks(one)["promotedAt"]) <= parse_time(one["status"]["startTime"])


def _marks(found: Json) -> Json:
    marks: Json = found["status"].get("marks") or {}
    return marks


def _promoted_in_time(found: Json) -> None:
    """Promoted with its clocks noted once it had waited as long as the knob says, and in the first round from then.

    What it waited before its first run counts too: where that alone is enough, it is due as soon as its run has ended.
    A plan in each round looks for who is due; of the three rounds one is that, two are for a busy machine.
    """
    status = found["status"]
    service, marks = status["service"], status["marks"]
    ran_s = marks["promotedGPUSeconds"] / 4
    assert marks["promotedGPUSeconds"] == pytest.approx(service["attainedGPUSeconds"])
    assert marks["promotedWaitingSeconds"] >= KNOB * ran_s
    before_s = parse_time(status["startTime"]) - parse_time(found["metadata"]["creationTimestamp"])
    due_s = max(KNOB * ran_s, before_s)
    assert marks["promotedWaitingSeconds"] <= due_s + 3 * ROUND_S, "promoted in the first plans from when it was due"
    since_promotion = parse_time(status["allocation"]["leaseUntil"]) - parse_time(marks["promotedAt"])
    assert since_promotion <= 12 * ROUND_S, "the first round after its promotion has room for it"
    assert parse_time(marks["startedAt"]) < parse_time(marks["promotedAt"])
