"""Faults that somebody with rights in the cluster makes: refused writes, a full quota, objects that are too large, jobs
that are deleted while nobody looks, clocks that are set."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from chaos.faults.api_server import UNREACHABLE
from chaos.faults.draw import Fault
from chaos.faults.link import Break
from chaos.faults.refusals import Refusal
from chaos.observer.book import CLOCK, Book
from chaos.stage import Stage
from chaos.workload import plain_template
from synergy_kube.resources import TRAINING_JOBS, Resource

_LOG = logging.getLogger("chaos")
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
LARGE_BYTES = 1_400_000
"""Of a pod template: the API server takes the object, and hardly anything more in it."""
_AHEAD_S, _BACK_S = 86_400, -1_800
"""A day ahead; back no further than the certificates go."""
_STORM_PART = 0.7
Insist = Callable[[Callable[[], Awaitable[Any]]], Awaitable[None]]
"""Does it again until the API server answers."""


class IllWill:
    """`elsewhere` is a namespace of its own for jobs that are not meant to run."""

    def __init__(self, stage: Stage, book: Book, elsewhere: str, insist: Insist) -> None:
        self._stage = stage
        self._book = book
        self._refusals = stage.refusals
        self._elsewhere = elsewhere
        self._insist = insist

    async def storm(self, fault: Fault, target: str) -> None:
        """Most writes of the operator or the extenders are refused with 429 or 500."""
        code, room = target.split("-", 1)
        everything = Refusal(self._stage.users[room], ("*/*",), ("*",), int(code), _STORM_PART)
        await self._refuse(everything, fault.seconds)

    async def deny(self, fault: Fault, target: str) -> None:
        """A policy engine refuses what the operator makes (`creations`), or changes of pods (`ungating`)."""
        operations = ("CREATE",) if target == "creations" else ("UPDATE",)
        resources = ("pods", "services", "jobs") if target == "creations" else ("pods",)
        await self._refuse(Refusal(self._stage.users["operator"], resources, operations, 403), fault.seconds)

    async def _refuse(self, refusal: Refusal, seconds: float) -> None:
        name = f"chaos-{uuid.uuid4().hex[:8]}"
        _LOG.info("%d for %s of %s for %.1f s", refusal.code, ",".join(refusal.resources), refusal.user, seconds)
        try:
            with suppress(*UNREACHABLE):  # no API server: nothing is refused that it would not refuse anyway
                async with self._refusals.in_force(name, refusal, [self._stage.namespace]):
                    await asyncio.sleep(seconds)
        finally:
            await self._insist(lambda: self._refusals.forget(name))

    async def fill_quota(self, fault: Fault, _: str) -> None:
        """The namespace's quota has no room for anything beyond what is there; afterwards it is gone."""
        name = f"full-{uuid.uuid4().hex[:8]}"
        namespace = self._stage.namespace
        hard = {"pods": "0", "count/services": "0"}
        _LOG.info("quota %s for %.1f s: %s", name, fault.seconds, hard)
        body = {"metadata": {"name": name}, "spec": {"hard": hard}}
        await self._insist(lambda: self._stage.kube.create(QUOTAS, body, namespace))
        await asyncio.sleep(fault.seconds)
        await self._insist(lambda: self._stage.kube.delete(QUOTAS, name, namespace))

    async def submit_oversize(self, fault: Fault, _: str) -> None:
        """Somebody submits a job whose pod template nearly fills an object of the API server."""
        template = plain_template()
        template["metadata"]["annotations"]["example.com/ballast"] = "x" * LARGE_BYTES
        async with self._stranger("large", {"gpus": 1, "steps": 100, "template": template}):
            await asyncio.sleep(fault.seconds)

    async def drop_job(self, fault: Fault) -> None:
        """A job that is being measured, and for whose profile others may wait, is deleted while the operator hears
        nothing."""
        spec = {"gpus": 1, "steps": 100, "template": plain_template(), "profile": {"mode": "Auto"}}
        async with self._stranger("dropped", spec):
            await asyncio.sleep(min(2.0, fault.seconds))
            link = self._stage.links["operator-api"]
            link.fail(Break.BLACKHOLE)
            cut = asyncio.get_running_loop().call_later(fault.seconds, link.heal)
        await asyncio.sleep(max(0.0, cut.when() - asyncio.get_running_loop().time()))

    async def step_clock(self, fault: Fault, program: str) -> None:
        """The wall clock of one process is set ahead or back, and right again afterwards."""
        offset = _AHEAD_S if fault.way < 0.5 else _BACK_S
        _LOG.info("the clock of %s is %+d s off for %.1f s", program, offset, fault.seconds)
        self._book.fails(CLOCK)
        clock = self._stage.clocks[program]
        clock.step(offset)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            clock.step(0)
            self._book.is_back(CLOCK)

    @asynccontextmanager
    async def _stranger(self, kind: str, spec: dict[str, Any]) -> AsyncIterator[None]:
        """A job in the other namespace, deleted afterwards."""
        name = f"{kind}-{uuid.uuid4().hex[:8]}"
        _LOG.info("job %s in %s", name, self._elsewhere)
        body = {"metadata": {"name": name}, "spec": spec}
        await self._insist(lambda: self._stage.kube.create(TRAINING_JOBS, body, self._elsewhere))
        try:
            yield
        finally:
            await self._insist(lambda: self._stage.kube.delete(TRAINING_JOBS, name, self._elsewhere))
