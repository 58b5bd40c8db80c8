"""The example that reads through the cache: what it costs to have a part of the data in memory only."""

import re
import sys

import pytest

from support.job.example import EXAMPLES, Example
from support.job.harness import Harness, at_most

QUICK = ("--device-ms", "1", "--cpu-ms-per-step", "1", "--storage-mib-per-s", "400", "--log-every", "10")
STEP_MIB = 32 * 8192 / 2**20


def test_it_learns_and_each_epoch_has_the_hits_of_the_cached_fraction(example: Example) -> None:
    code, output = example.run("cached_images.py", *QUICK, SYNERGY_CACHE_BYTES=str(4 << 20))
    assert code == 0, output
    losses = [float(value) for value in re.findall(r"step \d+ loss ([\d.]+)", output)]
    assert sum(losses[-3:]) < sum(losses[:3]) / 3
    hits = [int(count) for count in re.findall(r"epoch \d+: (\d+) of 1024 images from the cache", output)]
    assert hits == [0, *2 * [pytest.approx(512, rel=0.02)]]


@pytest.mark.parametrize(("hit_rate", "rate"), [("1", 40.0), ("0.5", 16.0)])
def test_a_profile_run_is_as_fast_as_that_fraction_allows(harness: Harness, hit_rate: str, rate: float) -> None:
    """A step of 25 ms on the device, and 0.25 MiB from storage of 2 MiB/s."""
    script = [sys.executable, str(EXAMPLES / "cached_images.py"), "--device-ms", "25", "--cpu-ms-per-step", "1"]
    run = harness.run_command(
        [*script, "--storage-mib-per-s", "2"], "--steps", "30", "--warmup-steps", "8", SYNERGY_PROFILE_HIT_RATE=hit_rate
    )
    assert run.result["outcome"] == "measured", run.output
    assert run.result["steps_per_second"] == at_most(rate)
    assert run.result["cached"] is True


def test_a_profile_run_reads_no_faster_than_it_may(harness: Harness) -> None:
    script = [sys.executable, str(EXAMPLES / "cached_images.py"), "--device-ms", "25", "--cpu-ms-per-step", "1"]
    run = harness.run_command(
        [*script, "--storage-mib-per-s", "100"],
        *("--steps", "20", "--warmup-steps", "4"),
        SYNERGY_PROFILE_HIT_RATE="0",
        SYNERGY_STORAGE_BYTES_PER_S=str(2 << 20),
    )
    assert run.result["steps_per_second"] == at_most(2 / STEP_MIB)
