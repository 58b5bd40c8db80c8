"""The store on SQLite and on a real PostgreSQL."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.util.exc import CommandError
from sqlalchemy.exc import SQLAlchemyError

from support.dashboard.postgres import Postgres
from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Sample, Share, Usage, UseSample
from synergy_dashboard.store.bundle import Facts, Position, WaitNow
from synergy_dashboard.store.engine import WRITES, engine_of
from synergy_dashboard.store.leader import NotLeadingError
from synergy_dashboard.store.store import Store
from synergy_dashboard.store.tables import METADATA

DAY = 86400.0
HOUR = 3600.0
LARGE = 1 << 40
MANY = 1000


def job(uid: str = "u1", **changes: Any) -> JobFact:
    first = JobFact(
        uid=uid, namespace="team", name=f"job-{uid}", tenant="vision", created_s=100.0, gpus=2,
        gpu_types=("V100", "T4"), steps=LARGE, weight=1.5,
    )  # fmt: skip
    return replace(first, **changes)


def run(uid: str = "u1", number: int = 1, **changes: Any) -> RunFact:
    shares = (Share(node="n1", gpus=2, cpu_millis=4000, memory_bytes=LARGE),)
    first = RunFact(
        uid=uid, run=number, purpose="Train", gpu_type="V100", gpus=2, shares=shares, granted_s=200.0, steps_per_s=3.0,
        proportional_steps_per_s=2.0, partners=("team/other",),
    )  # fmt: skip
    return replace(first, **changes)


def test_what_is_written_is_read(store: Store) -> None:
    resize = ResizeFact(uid="u1", run=1, at_s=250.0, shares=(Share(node="n1", gpus=2, cpu_millis=1, memory_bytes=2),))
    sample = Sample(uid="u1", at_s=240.0, steps=LARGE, steps_per_s=0.25, cpu_millis=3, memory_bytes=LARGE)
    use = UseSample(at_s=240.0, gpu_type="V100", gpus=8, gpus_given=2, gpus_wanted=4, waiting=1)
    wait = WaitNow(uid="u1", at_s=150.0, reason="NotEnoughGPUs", message="a zero\x00 and ünïcode", position=3)
    facts = Facts(jobs=(job(),), runs=(run(),), resizes=(resize,), waits=(wait,), samples=(sample,), use=(use,))
    store.apply([facts])
    assert store.job("team", "job-u1") == job()
    assert store.runs_of("u1") == [run()]
    assert store.runs(0.0, 300.0, None, MANY) == [(job(), run())]
    assert store.resizes_of("u1") == [resize]
    assert store.samples_of("u1") == [sample]
    assert store.use(0.0, 300.0) == [use]
    (waited,) = store.waits_of("u1")
    assert (waited.since_s, waited.until_s, waited.reason, waited.position) == (150.0, None, "NotEnoughGPUs", 3)
    assert waited.message == "a zero� and ünïcode"
    assert store.first_s() == 150.0


def test_an_empty_store_answers(store: Store) -> None:
    assert store.job("team", "no") is None
    assert (store.jobs(0, 9e9, None, MANY), store.runs(0, 9e9, [], MANY), store.use(0, 9e9)) == ([], [], [])
    assert (store.usage(0, 9e9, None), store.first_s()) == ([], None)


def test_times_select_what_overlaps(store: Store) -> None:
    over = run(number=1, ended_s=300.0, outcome="Yielded")
    held = run(number=2, granted_s=400.0)
    store.apply([Facts(jobs=(job(), job("u2", created_s=500.0, deleted_s=600.0, namespace="b")), runs=(over, held))])
    assert [one.run for _, one in store.runs(301.0, 400.0, None, MANY)] == []
    assert [one.run for _, one in store.runs(299.0, 401.0, None, MANY)] == [1, 2]
    assert [one.run for _, one in store.runs(9000.0, 9001.0, {"team"}, MANY)] == [2]
    assert store.runs(0.0, 9000.0, {"b"}, MANY) == []


def test_jobs_are_read_in_pages_by_their_creation(store: Store) -> None:
    created = {"e": 500.0, "b": 200.0, "d": 200.0, "a": 200.5, "c": 200.0, "early": 99.0}
    store.apply([Facts(jobs=tuple(job(uid, created_s=at_s) for uid, at_s in created.items()))])
    store.apply([Facts(jobs=(job("other", created_s=300.0, namespace="b"),))])
    found, after = [], None
    while page := store.jobs(100.0, 500.0, {"team"}, 2, after):
        found.append([one.uid for one in page])
        after = page[-1]
    assert found == [["b", "c"], ["d", "a"]]
    assert [one.uid for one in store.jobs(99.0, 501.0, None, MANY)] == ["early", "b", "c", "d", "a", "other", "e"]


def test_a_name_means_its_newest_job(store: Store) -> None:
    store.apply([Facts(jobs=(job("new", name="same", created_s=9.0), job("old", name="same", created_s=5.0)))])
    found = store.job("team", "same")
    assert found is not None
    assert found.uid == "new"


def test_usage_counts_what_lies_in_the_time_asked_for(store: Store) -> None:
    runs = (
        run(number=1, granted_s=0.0, ended_s=2 * HOUR, revoked_s=1.5 * HOUR, outcome="Yielded"),
        run(number=2, granted_s=3 * HOUR),
        run("u2", 1, granted_s=0.0, ended_s=9 * HOUR, steps_per_s=0.0),
    )
    other = job("u2", namespace="b", tenant="speech")
    waits = (WaitNow(uid="u1", at_s=2 * HOUR, reason="WaitingForTurn"), WaitNow(uid="u1", at_s=3 * HOUR))
    store.apply([Facts(jobs=(job(), other), runs=runs, waits=waits)])
    assert store.usage(HOUR, 4 * HOUR, {"team"}) == [
        Usage(
            tenant="vision", namespace="team", gpu_hours=4.0, waiting_hours=1.0, gained_gpu_hours=2.0, runs=2,
            preemptions=1, jobs=1, finished=0,
        )
    ]  # fmt: skip
    rows = store.usage(HOUR, 4 * HOUR, None)
    assert [(row.tenant, row.gpu_hours, row.gained_gpu_hours) for row in rows] == [
        ("speech", 6.0, 0.0), ("vision", 4.0, 2.0),
    ]  # fmt: skip


def test_usage_counts_jobs_that_were_there_and_those_that_ended(store: Store) -> None:
    jobs = (job(finished_s=2 * HOUR), job("u2", created_s=HOUR), job("u3", created_s=9 * HOUR))
    store.apply([Facts(jobs=(*jobs, job("u4", deleted_s=0.5 * HOUR, finished_s=0.4 * HOUR)))])
    (row,) = store.usage(HOUR, 4 * HOUR, None)
    assert (row.jobs, row.finished, row.gpu_hours, row.runs) == (2, 1, 0.0, 0)


def test_waits_are_those_that_began_in_the_time(store: Store) -> None:
    waits = [
        WaitNow(uid=uid, at_s=at_s, reason=reason)
        for uid, at_s, reason in (("u1", 5.0, "A"), ("u1", 10.0, "B"), ("u2", 12.0, "A"), ("u1", 20.0, "C"))
    ]
    store.apply([Facts(jobs=(job(), job("u2", namespace="b")))])
    for one in waits:
        store.apply([Facts(waits=(one,))])
    found = [(of.uid, wait.reason) for of, wait in store.waits(10.0, 20.0, None, MANY)]
    assert found == [("u1", "B"), ("u2", "A")]
    assert [wait.reason for _, wait in store.waits(0.0, 99.0, {"b"}, MANY)] == ["A"]


def test_resizes_are_those_of_the_namespaces(store: Store) -> None:
    resizes = [
        ResizeFact(uid=uid, run=1, at_s=at_s, shares=(Share(node="n1", gpus=2, cpu_millis=1, memory_bytes=size),))
        for size, (uid, at_s) in enumerate((("u1", 5.0), ("u2", 10.0), ("u1", 12.0), ("u2", 20.0)))
    ]
    runs = (run(granted_s=1.0), run("u2", granted_s=2.0))
    store.apply([Facts(jobs=(job(), job("u2", namespace="b")), runs=runs, resizes=tuple(resizes))])
    assert [(of.uid, one.at_s) for of, one in store.resizes(5.0, 20.0, None, MANY)] == [
        ("u1", 5.0), ("u2", 10.0), ("u1", 12.0),
    ]  # fmt: skip
    assert [one.at_s for _, one in store.resizes(0.0, 99.0, {"b"}, MANY)] == [10.0, 20.0]
    assert store.resizes(0.0, 99.0, [], MANY) == []
    assert store.resized(0.0, 99.0, None) == {"u1", "u2"}
    assert (store.resized(11.0, 13.0, None), store.resized(0.0, 99.0, {"b"})) == ({"u1"}, {"u2"})
    assert (store.first_s(), store.first_s({"team"}), store.first_s({"b"}), store.first_s([])) == (1.0, 1.0, 2.0, None)


def test_of_more_facts_than_are_wanted_the_newest_are_read(store: Store) -> None:
    runs = [run(number=number, granted_s=10.0 * number, ended_s=200.0 - number) for number in (1, 2, 3, 4)]
    share = Share(node="n1", gpus=2, cpu_millis=1, memory_bytes=1)
    resizes = [
        ResizeFact(uid="u1", run=5, at_s=at_s, shares=(replace(share, cpu_millis=int(at_s)),))
        for at_s in (8.0, 6.0, 7.0)
    ]
    store.apply([Facts(jobs=(job(),), runs=(*runs, run(number=5, granted_s=5.0)), resizes=tuple(resizes))])
    for at_s in (1.0, 2.0, 3.0):
        store.apply([Facts(waits=(WaitNow(uid="u1", at_s=at_s, reason=f"R{at_s:.0f}"),))])
    asked = 0.0, 999.0, {"team"}
    assert [one.run for _, one in store.runs(*asked, 3)] == [5, 1, 2], "the open one, and those that ended last"
    assert [one.at_s for _, one in store.resizes(*asked, 2)] == [7.0, 8.0]
    assert [one.reason for _, one in store.waits(*asked, 2)] == ["R2", "R3"]


def test_a_reason_that_stays_is_one_wait(store: Store) -> None:
    for at_s, reason, position in ((1.0, "A", 5), (2.0, "A", 4), (3.0, "B", 4), (4.0, "", None), (9.0, "B", 1)):
        store.apply([Facts(waits=(WaitNow(uid="u1", at_s=at_s, reason=reason, position=position),))])
    found = [(one.reason, one.since_s, one.until_s, one.position) for one in store.waits_of("u1")]
    assert found == [("A", 1.0, 3.0, 4), ("B", 3.0, 4.0, 4), ("B", 9.0, None, 1)]


def test_the_position_comes_with_its_facts_or_not_at_all(store: Store) -> None:
    store.apply([Facts(jobs=(job(),))], Position(version="7", objects={("team", "a"): {"x": 1}, ("team", "b"): {}}))
    broken = replace(run(), granted_s=None)  # type: ignore[arg-type]
    with pytest.raises((SQLAlchemyError, TypeError)):
        store.apply([Facts(jobs=(job("u2"),), runs=(broken,))], Position(version="8"))
    remembered = store.remembered()
    assert (remembered.version, remembered.objects) == ("7", {("team", "a"): {"x": 1}, ("team", "b"): {}})
    assert store.job("team", "job-u2") is None
    assert store.lead()
    store.apply([], Position(version="9", objects={("team", "a"): None, ("team", "b"): {"y": "\x00"}}))
    assert store.remembered().objects == {("team", "b"): {"y": "\x00"}}


def leads_soon(store: Store) -> bool:
    """PostgreSQL frees the lock of a connection a moment after its client has closed it."""
    deadline = time.monotonic() + 10
    while not (leads := store.lead()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return leads


def test_one_leads(store: Store, url: str) -> None:
    other = Store(url)
    other.migrate()
    assert not other.lead()
    with pytest.raises(NotLeadingError):
        other.apply([Facts(jobs=(job(),))])
    store.apply([Facts(jobs=(job(),))])
    assert other.job("team", "job-u1") == job()
    store.resign()
    assert leads_soon(other)
    assert not store.lead()
    with pytest.raises(NotLeadingError):
        store.apply([Facts(jobs=(job("u2"),))])
    other.close()


def test_all_who_start_at_once_find_the_newest_shape(url: str) -> None:
    stores = [Store(url) for _ in range(3)]
    failed: list[BaseException] = []

    def migrate(one: Store) -> None:
        try:
            one.migrate()
        except BaseException as error:  # noqa: BLE001 - told by the assertion
            failed.append(error)

    threads = [threading.Thread(target=migrate, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        one.close()
    assert not failed


def test_migrations_make_the_tables_that_the_store_uses(store: Store, url: str) -> None:
    engine = engine_of(url)
    inspector = sa.inspect(engine)
    for table in METADATA.sorted_tables:
        found = {column["name"]: column for column in inspector.get_columns(table.name)}
        assert found.keys() == {column.name for column in table.columns}, table.name
        for column in table.columns:
            assert found[column.name]["nullable"] == column.nullable, column
            assert isinstance(found[column.name]["type"], type(column.type).__mro__[1]), column
        assert inspector.get_pk_constraint(table.name)["constrained_columns"] == [c.name for c in table.primary_key]
        names = {index["name"]: index["column_names"] for index in inspector.get_indexes(table.name)}
        assert names == {str(index.name): [c.name for c in index.columns] for index in table.indexes}
    engine.dispose()


def test_a_newer_shape_is_left_alone(store: Store, url: str) -> None:
    store.apply([Facts(jobs=(job(),))])
    engine = engine_of(url)
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(CommandError, match="9999"):
        store.migrate()
    assert store.job("team", "job-u1") == job()


def test_old_samples_are_thinned_and_older_ones_go(store: Store) -> None:
    now = 40 * DAY
    ages = {"fresh": 0.5 * DAY, "days": 3 * DAY, "weeks": 20 * DAY, "gone": 35 * DAY}
    samples, use = [], []
    for age in ages.values():
        for k in range(720):  # two hours, one in 10 s
            at_s = now - age + 10.0 * k
            samples.append(Sample(uid="u1", at_s=at_s, steps=k, steps_per_s=1.0, cpu_millis=1, memory_bytes=1))
            use.append(UseSample(at_s=at_s, gpu_type="T4", gpus=1, gpus_given=k, gpus_wanted=0, waiting=0))
    store.apply([Facts(jobs=(job(),), samples=tuple(samples), use=tuple(use))])
    for _ in range(2):  # the second finds nothing to do
        store.prune(now, 30.0)
        for kept in ([s.at_s for s in store.samples_of("u1", 10_000)], [u.at_s for u in store.use(0, now, 10_000)]):
            counts = {
                name: sum(now - age <= at_s < now - age + 2 * HOUR for at_s in kept) for name, age in ages.items()
            }
            assert counts == {"fresh": 720, "days": 24, "weeks": 2, "gone": 0}
    last = [s.steps for s in store.samples_of("u1", 10_000) if now - 20 * DAY <= s.at_s < now - 20 * DAY + 2 * HOUR]
    assert last == [359, 719]


def test_a_later_prune_thins_what_has_grown_old_since(store: Store) -> None:
    samples = [
        Sample(uid="u1", at_s=10.0 * k, steps=k, steps_per_s=1.0, cpu_millis=1, memory_bytes=1) for k in range(720)
    ]
    store.apply([Facts(samples=tuple(samples))])
    for now, left in ((DAY, 720), (DAY + HOUR, 360 + 12), (DAY + 2 * HOUR, 24), (14 * DAY + HOUR, 13), (15 * DAY, 2)):
        store.prune(now, 30.0)
        assert len(store.samples_of("u1", 10_000)) == left, now


def test_what_was_over_too_long_ago_goes_and_what_is_open_stays(store: Store) -> None:
    old = run(number=1, ended_s=300.0, outcome="Yielded")
    resize = ResizeFact(uid="u1", run=1, at_s=250.0, shares=())
    waits = (WaitNow(uid="u1", at_s=10.0, reason="A"), WaitNow(uid="u1", at_s=20.0, reason="B"))
    gone = job("u2", deleted_s=5.0)
    store.apply([Facts(jobs=(job(), gone), runs=(old, run(number=2), run("u2")), resizes=(resize,), waits=waits)])
    store.prune(31 * DAY, 30.0)
    assert [one.run for one in store.runs_of("u1")] == [2]
    assert [one.reason for one in store.waits_of("u1")] == ["B"]
    assert store.resizes_of("u1") == []
    assert store.job("team", "job-u2") is None
    assert store.runs_of("u2") == []


def test_few_samples_stand_for_many(store: Store) -> None:
    samples = [
        Sample(uid="u1", at_s=float(k), steps=k, steps_per_s=1.0, cpu_millis=1, memory_bytes=1) for k in range(99)
    ]
    use = [
        UseSample(at_s=float(k), gpu_type=kind, gpus=1, gpus_given=1, gpus_wanted=0, waiting=0)
        for k in range(99)
        for kind in ("A", "B")
    ]
    store.apply([Facts(samples=tuple(samples), use=tuple(use))])
    chosen = [one.steps for one in store.samples_of("u1", 10)]
    assert chosen == list(range(8, 99, 10))
    moments = store.use(0.0, 99.0, 10)
    assert [one.at_s for one in moments] == [float(k) for k in chosen for _ in "AB"]


@pytest.mark.parametrize("bad", ["nonsense", "mysql://h/d", "sqlite://", "sqlite:///:memory:"])
def test_another_database_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite.*postgresql"):
        Store(bad)


def test_a_database_that_crashes_comes_back_with_all_that_was_written(postgres_server: Postgres) -> None:
    store = Store(postgres_server.create("crash"))
    store.migrate()
    assert store.lead()
    store.apply([Facts(jobs=(job(),))], Position(version="1"))
    postgres_server.stop("immediate")
    with pytest.raises(SQLAlchemyError):
        store.apply([Facts(jobs=(job("u2"),))], Position(version="2"))
    postgres_server.start()
    with pytest.raises(NotLeadingError):  # the lock went with the connection
        store.apply([Facts(jobs=(job("u2"),))], Position(version="2"))
    assert store.lead()
    assert store.remembered().version == "1"
    store.apply([Facts(jobs=(job("u2"),))], Position(version="2"))
    assert store.remembered().version == "2"
    store.close()


def test_the_database_says_what_it_takes(store: Store) -> None:
    before = store.size_bytes()
    waits = [WaitNow(uid=f"u{number}", at_s=1.0, reason="NoFreeGPU", message="x" * 1000) for number in range(2000)]
    store.apply([Facts(waits=tuple(waits))])
    assert before + 1_000_000 < store.size_bytes() < before + 20_000_000
