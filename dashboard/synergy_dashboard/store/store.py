"""The history in a database."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy.engine import Connection

from synergy_dashboard.facts import History, JobFact, ResizeFact, RunFact, Sample, Usage, UseSample, WaitFact
from synergy_dashboard.store import pruning, reading, writing
from synergy_dashboard.store.bundle import Facts, Position, Remembered
from synergy_dashboard.store.engine import engine_of
from synergy_dashboard.store.leader import Leader
from synergy_dashboard.store.migrate import migrate


class Store(History):
    """The history, as `History` asks for it, and the recorder's way to write it.

    Every method may block and may be called from any thread: from asyncio by `asyncio.to_thread`. Each raises
    `sqlalchemy.exc.SQLAlchemyError` when the database cannot be reached.
    """

    def __init__(self, url: str) -> None:
        """`url` is `sqlite:////data/history.db` or `postgresql://user:password@host/name`. Raises ValueError for
        another."""
        self._engine = engine_of(url)
        self._leader = Leader(self._engine)

    def migrate(self) -> None:
        """Migrate the tables to the newest schema. Call this first."""
        migrate(self._engine)

    def close(self) -> None:
        """Close the connections and give up the right to write."""
        self._leader.resign()
        self._engine.dispose()

    def lead(self) -> bool:
        """Get the right to write; False while another process has it. `apply` and `prune` need it."""
        return self._leader.lead()

    def resign(self) -> None:
        """Give up the right to write."""
        self._leader.resign()

    def remembered(self) -> Remembered:
        """The recorder's position at its last write."""
        with self._reading() as connection:
            return Remembered(
                version=writing.position(connection, writing.WATCHED), objects=writing.objects(connection)
            )

    def apply(self, facts: Sequence[Facts], position: Position | None = None) -> None:
        """Write facts in order, and the recorder's position after them: all or nothing."""
        with self._leader.writing() as connection:
            writing.write_facts(connection, facts)
            if position is not None:
                writing.write_position(connection, position)

    def prune(self, now: float, keep_days: float) -> None:
        """Delete facts that ended `keep_days` ago, and thin out samples older than a day."""
        with self._leader.writing() as connection:
            pruning.forget(connection, now - keep_days * pruning.DAY_S)
        with self._leader.writing() as connection:
            pruning.thin(connection, now)

    def size_bytes(self) -> int:
        """What the database takes on its disk, without what PostgreSQL keeps for all its databases."""
        with self._reading() as connection:
            return reading.size_bytes(connection)

    def namespaces(self, most: int) -> set[str]:
        """Namespaces that have or had jobs. Of more than `most` those of the newest jobs."""
        with self._reading() as connection:
            return reading.namespaces(connection, most)

    def job(self, namespace: str, name: str) -> JobFact | None:
        """The newest job of that name."""
        with self._reading() as connection:
            return reading.newest_job(connection, namespace, name)

    def jobs(
        self,
        since_s: float,
        until_s: float,
        namespaces: Collection[str] | None,
        most: int,
        after: JobFact | None = None,
    ) -> Sequence[JobFact]:
        """Jobs that were created, by creation and uid: the first `most`, or those that follow `after`."""
        with self._reading() as connection:
            return reading.jobs(connection, since_s, until_s, namespaces, most, after=after)

    def runs(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, RunFact]]:
        """Runs that held GPUs, by their grant. Of more than `most` those that hold some still, and that ended last."""
        with self._reading() as connection:
            return reading.runs(connection, since_s, until_s, namespaces, most)

    def runs_of(self, uid: str) -> Sequence[RunFact]:
        """All runs of a job, by number."""
        with self._reading() as connection:
            return reading.runs_of(connection, uid)

    def resizes_of(self, uid: str) -> Sequence[ResizeFact]:
        """By time."""
        with self._reading() as connection:
            return reading.resizes_of(connection, uid)

    def resizes(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, ResizeFact]]:
        """By time. Of more than `most` the newest."""
        with self._reading() as connection:
            return reading.resizes(connection, since_s, until_s, namespaces, most)

    def resized(self, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Collection[str]:
        """The uids of the jobs of which a run was resized."""
        with self._reading() as connection:
            return reading.resized(connection, since_s, until_s, namespaces)

    def waits_of(self, uid: str) -> Sequence[WaitFact]:
        """By time."""
        with self._reading() as connection:
            return reading.waits_of(connection, uid)

    def waits(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, WaitFact]]:
        """Waits that began in that time, by their begin. Of more than `most` the newest."""
        with self._reading() as connection:
            return reading.waits(connection, since_s, until_s, namespaces, most)

    def samples_of(self, uid: str, most: int = 500) -> Sequence[Sample]:
        """At most `most`, evenly chosen, by time."""
        with self._reading() as connection:
            return reading.samples_of(connection, uid, most)

    def use(self, since_s: float, until_s: float, most: int = 500) -> Sequence[UseSample]:
        """At most `most` moments, by time."""
        with self._reading() as connection:
            return reading.use(connection, since_s, until_s, most)

    def usage(self, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Sequence[Usage]:
        """By tenant and namespace."""
        with self._reading() as connection:
            return reading.usage(connection, since_s, until_s, namespaces)

    def first_s(self, namespaces: Collection[str] | None = None) -> float | None:
        """The earliest time in the history; None while it is empty."""
        with self._reading() as connection:
            return reading.first_s(connection, namespaces)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._engine.connect() as connection, connection.begin():
            yield connection
