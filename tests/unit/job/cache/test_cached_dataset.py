"""The data set that reads through the cache, its size in a pod, and its reads in a profile run."""

import json
import os
import pickle
import time
from collections import Counter
from collections.abc import Iterator

import pytest

import synergy_job
from support.job.cached_items import Files, double
from support.job.lease_server import LeaseServer
from synergy_job.cache import handover as cache_handover
from synergy_job.cache.budget import PodMemory
from synergy_job.cache.cache import Cache, cached_bytes, follow_memory
from synergy_job.cache.dataset import CachedDataset
from synergy_job.cache.layout import Item
from synergy_job.cache.profile_reads import ProfileReads, counts_as_cached
from synergy_job.cache.store import Store
from synergy_job.environment import ConfigError
from synergy_job.lease.client import LeaseClient, Report

MIB = 1 << 20


@pytest.fixture
def fetched() -> Counter[int]:
    """How often each item was read from storage in this process."""
    return Counter()


# the data set


def test_items_are_read_once_and_transformed_each_time(fetched: Counter[int]) -> None:
    samples = iter(range(100))
    data: CachedDataset[tuple[bytes, int]] = CachedDataset(
        Files(10, fetched), lambda item: (item, next(samples)), max_bytes=MIB
    )
    assert [data[3] for _ in range(2)] == [(b"3" * 100, 0), (b"3" * 100, 1)]
    assert (len(data), fetched) == (10, {3: 1})
    assert data.counts() == (0, 1, 1)


def test_items_that_are_no_bytes_are_kept_as_well(fetched: Counter[int]) -> None:
    class Labelled(Files):
        def __getitem__(self, index: int) -> object:
            return super().__getitem__(index), {"label": index}

    data: CachedDataset[object] = CachedDataset(Labelled(3, fetched), max_bytes=MIB)
    assert [data[1], data[1]] == [(b"1" * 100, {"label": 1})] * 2
    assert fetched == {1: 1}


def test_without_a_budget_nothing_is_kept_and_all_counts_as_missed(fetched: Counter[int]) -> None:
    data: CachedDataset[bytes] = CachedDataset(Files(3, fetched))
    assert [data[0], data[0]] == [b"0" * 100] * 2
    assert (fetched, data.counts().misses, data.cache.max_bytes) == ({0: 2}, 2, 0)


def test_it_ends_where_the_data_set_ends(fetched: Counter[int]) -> None:
    data: CachedDataset[bytes] = CachedDataset(Files(3, fetched), max_bytes=MIB)
    assert len(list(data)) == 3  # the old protocol of iteration goes on to the first IndexError
    for index in (-1, 3):
        with pytest.raises(IndexError, match=f"item {index} of a data set of 3"):
            data[index]
        with pytest.raises(IndexError, match=f"item {index} of a data set of 3"):
            data.cache.get(index)


def test_the_inner_data_set_hears_of_epochs(fetched: Counter[int]) -> None:
    class Shuffled(Files):
        epoch = -1

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

    inner = Shuffled(3, fetched)
    CachedDataset(inner, max_bytes=MIB).set_epoch(7)
    assert inner.epoch == 7


# its size


def test_the_plan_decides_the_size_and_what_the_kernel_gives_bounds_it() -> None:
    limit = [1000]
    memory = PodMemory({"SYNERGY_CACHE_BYTES": "300", "SYNERGY_MEMORY_BYTES": "1200"}, lambda: limit[0])
    assert memory.budget() == 300
    assert memory.budget(1200) == 300
    assert memory.budget(1000) == 100, "less counts at once: the kernel takes it only once it is free"
    assert memory.budget(400) == 0
    assert memory.budget(1500) == 300, "more counts once it is there"
    limit[0] = 1300
    assert memory.budget(1500) == 600
    assert memory.budget(1300) == 400
    assert memory.budget() == 400, "what was said last counts on"


def test_a_resize_before_the_cache_was_made_counts() -> None:
    told = {"SYNERGY_CACHE_BYTES": "600", "SYNERGY_MEMORY_BYTES": "900", "SYNERGY_CONTAINER_BYTES": "800"}
    assert PodMemory(told, lambda: 400).budget() == 200
    assert PodMemory(told, lambda: 1000).budget() == 800


def test_where_no_limit_can_be_read_the_cache_does_not_grow() -> None:
    memory = PodMemory({"SYNERGY_CACHE_BYTES": "300", "SYNERGY_MEMORY_BYTES": "1200"}, lambda: None)
    assert [memory.budget(told) for told in (None, 1100, 2000)] == [300, 200, 300]


def test_outside_a_cluster_there_is_no_budget() -> None:
    assert PodMemory({}, lambda: 10**9).budget(10**9) == 0


@pytest.mark.parametrize("name", ["SYNERGY_CACHE_BYTES", "SYNERGY_MEMORY_BYTES", "SYNERGY_CONTAINER_BYTES"])
def test_a_size_that_is_no_number_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is 'much': it must be a whole number"):
        PodMemory({name: "much"})


def test_several_caches_share_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNERGY_CACHE_BYTES", str(10 * MIB))
    monkeypatch.setenv("SYNERGY_MEMORY_BYTES", str(100 * MIB))
    train, test = Cache(10, share=0.8), Cache(10, share=0.2, name="test")
    assert (train.max_bytes, test.max_bytes) == (8 * MIB, 2 * MIB)
    own = Cache(10, max_bytes=5, name="own")
    train.put(0, bytes(3 * MIB))
    assert cached_bytes() == 3 * MIB
    follow_memory(95 * MIB)
    assert (train.max_bytes, test.max_bytes, own.max_bytes) == (4 * MIB, MIB, 5)
    with pytest.raises(ValueError, match=r"share is 0.1 but other caches have 1 already"):
        Cache(10, share=0.1, name="more")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"items": 0}, "items is 0"),
        ({"items": 1, "max_bytes": -1}, "max_bytes is -1"),
        ({"items": 1, "share": 0.0}, "share is 0.0"),
        ({"items": 1, "share": 1.5}, "share is 1.5"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Cache(**arguments)  # type: ignore[arg-type]


def test_the_lease_s_answer_tells_the_pod_s_memory(lease_server: LeaseServer, lease_client: LeaseClient) -> None:
    wire = {"verdict": "continue", "next_report_s": 1}
    for told in ({"memory_bytes": 123}, {"memory_bytes": None}, {}):
        lease_server.answer = lambda _, told=told: (200, json.dumps({**wire, **told}).encode())
        assert lease_client.send(Report(1, 0, 1.0)).memory_bytes == told.get("memory_bytes")


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"job-{os.getpid()}"
    for key, value in {"SYNERGY_JOB": name, "LOCAL_WORLD_SIZE": "3", "LOCAL_RANK": "1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(key, value)
    return name


def test_a_first_process_without_such_a_cache_is_named(pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_handover, "WAIT_S", 0.1)
    with pytest.raises(synergy_job.CacheError, match="local rank 0 made no cache 'dataset' within"):
        Cache(10, max_bytes=5)


def test_two_caches_of_one_name_in_a_pod_are_refused(pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    first = cache_handover.pods_store("a", lambda: Store(1, 1), os.environ)
    with pytest.raises(synergy_job.CacheError, match="there is a cache 'a' in this pod already"):
        cache_handover.pods_store("a", lambda: Store(1, 1), os.environ)
    monkeypatch.setenv("LOCAL_RANK", "1")
    for _ in range(2):  # both that wait, so that the first stops serving
        assert cache_handover.pods_store("a", lambda: Store(1, 1), os.environ).items == first.items


def test_a_cache_that_another_user_hands_over_is_not_taken(pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    kept = cache_handover.pods_store("c", lambda: Store(5, 1), os.environ)
    monkeypatch.setenv("LOCAL_RANK", "1")
    mine = os.getuid()
    with monkeypatch.context() as as_another:
        as_another.setattr(os, "getuid", lambda: mine + 1)
        with pytest.raises(synergy_job.CacheError, match="another user's process answers"):
            cache_handover.pods_store("c", lambda: Store(5, 1), os.environ)
    for _ in range(2):
        assert cache_handover.pods_store("c", lambda: Store(5, 1), os.environ).items == kept.items


def test_a_data_set_of_another_length_is_refused(pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    kept = cache_handover.pods_store("b", lambda: Store(5, 1), os.environ)
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(synergy_job.CacheError, match="cache 'b' has 5 items on local rank 0 and 6 here"):
        Cache(6, max_bytes=1, name="b")
    assert cache_handover.pods_store("b", lambda: Store(5, 1), os.environ).items == kept.items


# profile runs


def reads(fetched: Counter[int], items: int = 1000, hit_rate: float = 1.0, pace: int = 0) -> ProfileReads:
    def fetch(index: int) -> Item:
        fetched[index] += 1
        return Item(bytes([index % 251]) * 100, pickled=False)

    return ProfileReads(Store(items, MIB), fetch, hit_rate, pace)


def test_with_all_in_memory_only_the_stand_ins_are_read(fetched: Counter[int]) -> None:
    source = reads(fetched)
    got = Counter(source.item(index).data[0] for _ in range(3) for index in range(1000))
    assert sum(fetched.values()) == len(fetched) == 256
    assert len(got) > 200, "they are many different ones"
    assert max(fetched) > 990, "from the whole data set"


@pytest.mark.parametrize("hit_rate", [0.0, 0.3, 0.85])
def test_a_fixed_fraction_counts_as_cached(fetched: Counter[int], hit_rate: float) -> None:
    source = reads(fetched, hit_rate=hit_rate)
    for _ in range(2):
        before = sum(fetched.values())
        for index in range(1000):
            source.item(index)
    misses = sum(fetched.values()) - before
    assert misses == pytest.approx(1000 * (1 - hit_rate), abs=3)
    assert misses == sum(not counts_as_cached(index, hit_rate) for index in range(1000)), "the same in each epoch"


def test_two_profile_runs_read_different_parts_of_the_data(fetched: Counter[int]) -> None:
    firsts = set()
    for _ in range(5):
        fetched.clear()
        reads(fetched, hit_rate=0.0).item(0)
        firsts |= set(fetched)
    assert len(firsts) > 1


def test_fetches_keep_to_the_pod_s_part_of_the_bandwidth(fetched: Counter[int]) -> None:
    source = reads(fetched, hit_rate=0.0, pace=10_000)
    began = time.monotonic()
    for index in range(30):
        source.item(index)
    assert 0.3 <= time.monotonic() - began < 3


def test_items_larger_than_the_memory_are_fetched_each_time(fetched: Counter[int]) -> None:
    def fetch(index: int) -> Item:
        fetched[index] += 1
        return Item(bytes(100), pickled=False)

    source = ProfileReads(Store(5, 50), fetch, 1.0, 0)
    fetched.clear()
    source.item(2)
    source.item(2)
    assert fetched[2] >= 2


@pytest.mark.parametrize("text", ["2", "-1", "nan", "half"])
def test_a_hit_rate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"SYNERGY_PROFILE_HIT_RATE is '{text}': it must be a number from 0 to 1"):
        ProfileReads.of_environment(Store(1, 1), lambda _: Item(b"", False), {"SYNERGY_PROFILE_HIT_RATE": text})


def test_in_a_profile_run_the_data_set_reads_so(fetched: Counter[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNERGY_PROFILE_SOCKET", "@nobody")
    monkeypatch.setenv("SYNERGY_PROFILE_HIT_RATE", "0.5")
    data: CachedDataset[bytes] = CachedDataset(Files(600, fetched), double)
    copy: CachedDataset[bytes] = pickle.loads(pickle.dumps(data))
    for which in (data, copy):
        fetched.clear()
        for index in range(600):
            assert len(which[index]) in (200, 400, 600)
    assert data.cache.used_bytes > 0


def test_in_a_small_profile_pod_the_stand_ins_take_no_more_than_the_cache_would(
    fetched: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNERGY_PROFILE_SOCKET", "@nobody")
    monkeypatch.setenv("SYNERGY_CACHE_BYTES", "5000")
    data: CachedDataset[bytes] = CachedDataset(Files(600, fetched))
    assert data.cache.max_bytes == 5000
