"""One cache for the processes of a pod, and for those of a data loader."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

import synergy_job
from support.job.cached_items import Files, Loader, double
from synergy_job.cache.dataset import CachedDataset


@pytest.fixture
def fetched() -> Counter[int]:
    """How often each item was read from storage in this process."""
    return Counter()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_iterate_counts_each_epoch_over_the_loader_s_processes(method: str, fetched: Counter[int]) -> None:
    data = CachedDataset(Files(40, fetched), double, max_bytes=2000)
    batches = list(synergy_job.iterate(Loader(data, method, workers=2, batch=8), steps=15))
    assert sorted(sample for batch in batches[:5] for sample in batch) == sorted(
        str(i).encode() * 200 for i in range(40)
    )
    kept = len(data.cache)
    assert 10 <= kept <= 20
    assert [(data.counts(e).hits, data.counts(e).misses) for e in (0, 1, 2)] == [(0, 40), *2 * [(kept, 40 - kept)]]


RANK_SCRIPT = """
import sys, time, synergy_job
cache = synergy_job.Cache(10, max_bytes=1000)
rank = sys.argv[1]
cache.put(int(rank), rank.encode() * 10)
while len(cache) < 3:
    time.sleep(0.01)
print([cache.get(i) for i in range(3)], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"job-{os.getpid()}"
    for key, value in {"SYNERGY_JOB": name, "LOCAL_WORLD_SIZE": "3", "LOCAL_RANK": "1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(key, value)
    return name


def test_the_processes_of_a_pod_have_one_cache(pod: str) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK_SCRIPT, str(rank)],
            env={**os.environ, "LOCAL_RANK": str(rank)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (2, 1, 0)
    ]
    try:
        assert [rank.stdout.readline() for rank in ranks if rank.stdout] == [
            f"{[b'0' * 10, b'1' * 10, b'2' * 10]}\n"
        ] * 3
    finally:
        for rank in ranks:
            rank.communicate(timeout=120)
