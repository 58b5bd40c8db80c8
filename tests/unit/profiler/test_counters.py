"""Outputs of GPU tools in their documented formats, and what they come to for a job."""

import json

import pytest

from support.counters import GPU, text
from synergy_profiler.counters.exposition import loads
from synergy_profiler.counters.gpm import parse_line
from synergy_profiler.counters.kernels import (
    ACTIVITY,
    METRICS,
    Kernel,
    KernelsError,
    load_of,
    read_kernels,
    sums,
)
from synergy_profiler.counters.load import GpuLoad, Load, mean_load, part, with_load
from synergy_profiler.gpu_usage import GpuUsage
from synergy_profiler.measurement import Measurement
from synergy_profiler.result import Measured

KERNELS = [Kernel(1e6, 0.625, 0.3, 0.9), Kernel(5e5, 0.8, 0.75, 1.0), Kernel(2.5e6, 0.125, 0.05, 0.2)]
HEADER = ",".join(f'"{name}"' for name in ("ID", *METRICS))


def test_an_exporter_tells_each_whole_gpu_and_blanks_are_not_figures() -> None:
    assert loads(text("dcgm.prom")) == {
        GPU: Load(0.4125, 0.225, 0.1875),
        "GPU-other": Load(0.031, 0.004, None),
    }


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "# HELP DCGM_FI_PROF_SM_ACTIVE x",
        'DCGM_FI_PROF_SM_ACTIVE{UUID="a"} 0.5',
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.5\nDCGM_FI_PROF_DRAM_ACTIVE{gpu="0"} 0.5',
        'DCGM_FI_PROF_SM_ACTIVE{UUID="a"} N/A\nDCGM_FI_PROF_DRAM_ACTIVE{UUID="a"} 0.5',
        'DCGM_FI_PROF_SM_ACTIVE{UUID="a"} 0.5\nDCGM_FI_PROF_DRAM_ACTIVE{UUID="a"} 9223372036854775794',
    ],
)
def test_gpus_without_both_activities_are_left_out(lines: str) -> None:
    assert loads(lines) == {}


def test_labels_may_have_braces_and_quotes_in_them() -> None:
    line = '{{x="a}}\\"{{",UUID="u"}} {}'
    lines = "DCGM_FI_PROF_SM_ACTIVE" + line.format(0.5) + "\nDCGM_FI_PROF_DRAM_ACTIVE" + line.format(1.004)
    assert loads(lines) == {"u": Load(0.5, 1.0, None)}


@pytest.mark.parametrize("name", ["kernels-raw.csv", "kernels-details.csv"])
def test_both_forms_of_an_output_tell_the_same_kernels(name: str) -> None:
    assert read_kernels(text(name)) == KERNELS


def test_the_thesis_sums_weigh_kernels_by_their_time() -> None:
    both = sums(KERNELS)
    assert both.memory == pytest.approx(30 * 1e6 + 75 * 5e5 + 5 * 2.5e6)
    assert both.compute == pytest.approx(62.5 * 1e6 + 80 * 5e5 + 12.5 * 2.5e6)
    assert both.duration_ns == 4e6


def test_a_jobs_load_is_the_kernels_mean_for_the_time_in_which_they_run() -> None:
    load = load_of(KERNELS, 0.5)
    assert load.compute == pytest.approx(0.5 * (0.9 * 1e6 + 1.0 * 5e5 + 0.2 * 2.5e6) / 4e6)
    assert load.bandwidth == pytest.approx(0.5 * 8e7 / 4e6 / 100)
    assert load.occupancy == pytest.approx(0.5 * (0.625 * 0.9 * 1e6 + 0.8 * 5e5 + 0.125 * 0.2 * 2.5e6) / 4e6)


def test_without_activity_kernels_count_as_active_everywhere() -> None:
    load = load_of([Kernel(10.0, 0.5, 0.25)], 0.8)
    assert load == Load(0.8, 0.2, 0.4)
    with pytest.raises(KernelsError, match="no time"):
        load_of([Kernel(0.0, 0.5, 0.25)], 0.8)


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", 'no line begins with "ID"'),
        ("==PROF== x\n==ERROR== ERR_NVGPUCTRPERM - no permission", "ERR_NVGPUCTRPERM - no permission"),
        (f"{HEADER}\n", "no kernel was profiled"),
        ('"ID","gpu__time_duration.sum"\n"0","5"', "kernel 0 has no sm__warps_active"),
        (f'{HEADER}\n"","weeks","%","%","%"\n"0","5","1","1","1"', "is in weeks; use --print-units base"),
        (f'{HEADER}\n"0","5","n/a","1","1"', "is 'n/a', not a number of 0 or more"),
        (f'{HEADER}\n"0","5","-1","1","1"', "is '-1', not a number of 0 or more"),
        (f'{HEADER}\n"0","5"', "is '', not a number"),
    ],
)
def test_an_output_that_tells_nothing_is_refused_with_what_it_lacks(output: str, problem: str) -> None:
    with pytest.raises(KernelsError, match=problem.replace("(", r"\(")):
        read_kernels(output)


def test_durations_come_in_any_unit_and_activity_is_optional() -> None:
    header = ",".join(f'"{name}"' for name in ("ID", *METRICS) if name != ACTIVITY)
    kernels = read_kernels(f'{header}\n"","usecond","%","%"\n"0","2.5","101","50"')
    assert kernels == [Kernel(2500.0, 1.0, 0.5)]


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("GPU-1, 50.0, 25.0, 12.5", GpuLoad(7.0, "GPU-1", Load(0.5, 0.125, 0.25))),
        ("GPU-1, 50.0, 250.0, 12.5", GpuLoad(7.0, "GPU-1", Load(0.5, 0.125, None))),
        ("GPU-1, 150, 25, 12", None),
        ("GPU-1, 50, 25, nan", None),
        ("GPU-1, 50, 25", None),
        ("GPU-1, x, 25, 1", None),
        ("", None),
    ],
)
def test_lines_of_gpm(line: str, known: GpuLoad | None) -> None:
    assert parse_line(line, 7.0) == known


def test_means_and_parts() -> None:
    assert mean_load([]) is None
    assert mean_load([Load(0.2, 0.4, 0.1), Load(0.6, 0.2, None)]) == Load(pytest.approx(0.4), pytest.approx(0.3), 0.1)
    assert [part(value) for value in (-0.1, 0.0, 1.005, 1.2)] == [None, 0.0, 1.0, None]


def test_a_result_says_its_source_and_keeps_utilisation_beside_counters() -> None:
    def told(usage: GpuUsage) -> object:
        return json.loads(Measured(Measurement(1.0, 0.0, 5, 5.0), 1, None, 7, False, gpu=usage).to_json())["gpu"]

    plain = GpuUsage(0.97, 0.44, 5, problem="no dcgm-exporter is set")
    assert told(plain) == {
        "compute": 0.97, "bandwidth": 0.44, "memory_bytes": 5, "source": "Utilization",
        "problem": "no dcgm-exporter is set",
    }  # fmt: skip
    assert told(with_load(GpuUsage(0.97, 0.44, 5), "DCGM", Load(0.41, 0.2, 0.1))) == {
        "compute": 0.41, "bandwidth": 0.2, "memory_bytes": 5, "source": "DCGM",
        "occupancy": 0.1, "utilization": 0.97, "memory_utilization": 0.44,
    }  # fmt: skip
