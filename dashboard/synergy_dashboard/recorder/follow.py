"""Follows the API server and writes what changes into the store.

The recorder only reads from the cluster. It continues from the version and the objects in the store. The API server
reports what changed meanwhile. If it has forgotten that version, a comparison finds it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec

from sqlalchemy.exc import SQLAlchemyError

from synergy_dashboard.recorder.changes import facts_between
from synergy_dashboard.recorder.trimming import trim
from synergy_dashboard.recorder.use import USE_S, trim_node, use_at
from synergy_dashboard.store.bundle import Facts, Key, Object, Position, check_numbers
from synergy_dashboard.store.leader import NotLeadingError
from synergy_dashboard.store.store import Store
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import GPU_POOLS, NODES, TRAINING_JOBS
from synergy_view.seen import SeenJob, read

P = ParamSpec("P")
_LOG = logging.getLogger(__name__)
_BATCH_S = 0.5
"""Changes of so long are one transaction."""
_POSITION_S = 10.0
"""After how long the collection's version is written although nothing else is."""
_PRUNE_S = 3600.0
_RETRY_S = 2.0
_MEASURE_S = 60.0


@dataclass(frozen=True, slots=True)
class _Told:
    at_s: float
    change: Change


class Recorder:
    """Keeps the history of TrainingJobs. `run` goes on until it is cancelled; it may be killed at any moment.

    While the database is away nothing is lost: afterwards the recorder begins anew where it last wrote.
    """

    def __init__(
        self, client: KubeClient, store: Store, *, keep_days: float = 90.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._client = client
        self._store = store
        self._keep_days = keep_days
        self._clock = clock
        self.written_s: float | None = None
        """When the store last took what there was to write; None before."""
        self.failures = 0
        """How often recording has ended with an error of the database."""
        self.size_bytes: int | None = None
        """Of the database, at most a minute old while this one records; None before."""
        self.skipped = 0
        """Changes of objects that this version cannot read, which are not in the history."""
        self._session: _Session | None = None

    @property
    def waiting(self) -> int:
        """Changes that the API server has reported and the store does not have yet."""
        return 0 if self._session is None else self._session.waiting

    async def run(self) -> None:
        """Record. The tables must have their newest shape."""
        while True:
            try:
                if await asyncio.to_thread(self._store.lead):
                    await self._record()
                else:
                    _LOG.info("another recorder writes the history")
            except* (SQLAlchemyError, NotLeadingError) as group:
                self.failures += 1
                _LOG.warning("recording: %s", "; ".join(str(error) for error in group.exceptions))
            await asyncio.sleep(_RETRY_S)

    async def _record(self) -> None:
        session = self._session = _Session(self._client, self._store, self._clock, self._skip)
        await asyncio.to_thread(session.remember)
        async with asyncio.TaskGroup() as tasks:
            for one in (session.jobs, session.nodes, session.pools):
                tasks.create_task(one.run())
            tasks.create_task(self._write(session))
            tasks.create_task(self._prune())
            tasks.create_task(self._measure())

    async def _write(self, session: "_Session") -> None:
        while True:
            await asyncio.sleep(_BATCH_S)
            await session.write()
            self.written_s = self._clock()

    async def _prune(self) -> None:
        while True:
            await _to_its_end(self._store.prune, self._clock(), self._keep_days)
            await asyncio.sleep(_PRUNE_S)

    async def _measure(self) -> None:
        while True:
            self.size_bytes = await asyncio.to_thread(self._store.size_bytes)
            await asyncio.sleep(_MEASURE_S)

    def _skip(self) -> None:
        self.skipped += 1


class _Session:
    """From one reading of the store to the next."""

    def __init__(self, client: KubeClient, store: Store, clock: Callable[[], float], skip: Callable[[], None]) -> None:
        """`skip` is called for each change that cannot be recorded."""
        self._store = store
        self._clock = clock
        self._skip = skip
        self._told: list[_Told] = []
        self._being_written = 0
        self._seen: dict[Key, SeenJob] = {}
        self._version = ""
        self._version_s = 0.0
        self._use_s = 0.0
        self.jobs = Reflector(client, TRAINING_JOBS, trim=trim, on_change=self._changed, optional=True)
        self.nodes = Reflector(client, NODES, trim=trim_node)
        self.pools = Reflector(client, GPU_POOLS, optional=True)

    def remember(self) -> None:
        """Begin at the store's version."""
        remembered = self._store.remembered()
        self._version = remembered.version
        self.jobs.begin_with(remembered.objects, remembered.version)
        for key, item in remembered.objects.items():
            try:
                self._seen[key] = read(item)
            except (ValueError, ArithmeticError) as error:
                _LOG.warning("a stored TrainingJob, %s/%s, cannot be read: %s", *key, error)

    @property
    def waiting(self) -> int:
        """Changes that were reported and are not written yet."""
        return len(self._told) + self._being_written

    async def write(self) -> None:
        """Write what was reported until now, if there is anything; one transaction."""
        told, self._told = self._told, []
        version, now = self.jobs.version, self._clock()
        moved = version != self._version and now - self._version_s >= _POSITION_S
        use = now // USE_S > self._use_s // USE_S and self._is_synced()
        if not (told or moved or use):
            return
        position = Position(version=version, objects={one.change.key: one.change.new for one in told})
        self._being_written = len(told)
        await _to_its_end(self._apply, told, position, now if use else None)
        self._being_written = 0
        self._version, self._version_s = version, now
        if use:
            self._use_s = now

    def _apply(self, told: Sequence[_Told], position: Position, use_s: float | None) -> None:
        facts = [self._facts_of(one) for one in told]
        if use_s is not None:
            nodes, pools = list(self.nodes.items.values()), list(self.pools.items.values())
            facts.append(self._use_of(nodes, pools, use_s))
        self._store.apply(facts, position)

    def _facts_of(self, told: _Told) -> Facts:
        """The facts of one change; none where this version cannot read it, which must not stop the others."""
        key = told.change.key
        old = self._seen.pop(key, None)
        try:
            new = read(told.change.new) if told.change.new is not None else None
            facts = facts_between(old, new, told.at_s)
            check_numbers(facts)
        except (ValueError, ArithmeticError) as error:
            _LOG.warning("TrainingJob %s/%s cannot be recorded: %s", *key, error)
            self._skip()
            return Facts()
        if new is not None:
            self._seen[key] = new
        return facts

    def _use_of(self, nodes: Sequence[Object], pools: Sequence[Object], at_s: float) -> Facts:
        """The use of GPUs now; none where it cannot be recorded."""
        try:
            facts = Facts(use=use_at(list(self._seen.values()), nodes, pools, at_s))
            check_numbers(facts)
        except (ValueError, ArithmeticError) as error:
            _LOG.warning("the use of GPUs cannot be recorded: %s", error)
            self._skip()
            return Facts()
        return facts

    def _is_synced(self) -> bool:
        return all(one.synced.is_set() for one in (self.jobs, self.nodes, self.pools))

    def _changed(self, change: Change) -> None:
        self._told.append(_Told(self._clock(), change))


async def _to_its_end(write: Callable[P, None], *args: P.args, **keywords: P.kwargs) -> None:
    """Write in a thread. Who is cancelled meanwhile waits for it: no write of one session comes after the next has read
    the store's version."""
    writing = asyncio.ensure_future(asyncio.to_thread(write, *args, **keywords))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait([writing])
        raise
