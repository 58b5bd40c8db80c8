import pytest

from synergy_core.colocation.importers.kernels import Kernel, usage_of, weighted_bandwidth, weighted_occupancy
from synergy_core.colocation.importers.nsight import read_kernels
from synergy_core.colocation.importers.samples import MIB, read_samples
from synergy_core.model.snapshot import FieldError

DETAILS = """==PROF== Connected to process 42 (/usr/bin/python3.11)
==PROF== Profiling "gemm" - 0: 0%....50%....100% - 9 passes
"ID","Process ID","Process Name","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","42","python3","gemm(float*, int)","GPU Speed Of Light Throughput","Duration","usecond","1,500.00"
"0","42","python3","gemm(float*, int)","GPU Speed Of Light Throughput","Memory Throughput","%","40.00"
"0","42","python3","gemm(float*, int)","Memory Workload Analysis","Memory Throughput","Gbyte/second","312.5"
"0","42","python3","gemm(float*, int)","Occupancy","Achieved Occupancy","%","80.00"
"1","42","python3","relu","GPU Speed Of Light Throughput","Duration","nsecond","500000"
"1","42","python3","relu","GPU Speed Of Light Throughput","DRAM Throughput","%","90.00"
"1","42","python3","relu","GPU Speed Of Light Throughput","Memory Throughput","%","95.00"
"1","42","python3","relu","Occupancy","Achieved Occupancy","%","20.00"
"""

_RAW = ("gpu__time_duration.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__warps_active.avg.pct_of_peak_sustained_active")  # fmt: skip
RAW = f"""\"ID","Kernel Name","{_RAW[0]}","{_RAW[1]}","{_RAW[2]}"
"","","ms","%","%"
"0","gemm","1.5","40","80"
"1","relu","0.5","90","20"
"""


@pytest.mark.parametrize("text", [DETAILS, RAW])
def test_both_pages_of_nsight_compute_give_the_same_kernels(text: str) -> None:
    first, second = read_kernels(text)
    for kernel, expected in ((first, (0.0015, 0.4, 0.8)), (second, (0.0005, 0.9, 0.2))):
        assert (kernel.seconds, kernel.bandwidth, kernel.occupancy) == pytest.approx(expected)


def test_sums_are_weighted_by_duration() -> None:
    kernels = read_kernels(DETAILS)
    assert weighted_bandwidth(kernels) == pytest.approx(0.4 * 0.0015 + 0.9 * 0.0005)
    assert weighted_occupancy(kernels) == pytest.approx(0.8 * 0.0015 + 0.2 * 0.0005)
    usage = usage_of(kernels, seconds=0.01, memory_bytes=7)
    assert (usage.compute, usage.bandwidth, usage.memory_bytes) == pytest.approx((0.13, 0.105, 7))


def test_kernels_cannot_take_longer_than_their_iterations() -> None:
    with pytest.raises(ValueError, match=r"the kernels take 2 s, more than the 1 s"):
        usage_of([Kernel(2.0, 0.5, 0.5)], seconds=1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no such thing\n", r"^ID: no such column"),
        (DETAILS.splitlines()[2], r"^ID: there is no kernel"),
        (DETAILS.replace('"usecond"', '"cycle"'), r"^line 4, Duration: unit 'cycle' is no time"),
        (DETAILS.replace('"500000"', '"n/a"'), r"^line 8, Duration: must be a number, is 'n/a'"),
        (DETAILS.replace("80.00", "180.00"), r"^line 7, Achieved Occupancy: must be 0 to 100 %, is 180 %"),
        (
            DETAILS.replace('"Achieved Occupancy"', '"Theoretical Occupancy"'),
            r"^line 4, Achieved Occupancy: is missing",
        ),
        (RAW.replace('"1","relu",', '"1",'), r"^line 4: has 4 values for 5 columns"),
    ],
)
def test_a_bad_export_names_line_and_metric(text: str, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        read_kernels(text)


@pytest.mark.parametrize(
    "text",
    [
        "utilization.gpu [%], utilization.memory [%], memory.used [MiB]\n30 %, 10 %, 900 MiB\n50 %, 20 %, 1000 MiB\n",
        "DCGM_FI_PROF_SM_ACTIVE,DCGM_FI_PROF_DRAM_ACTIVE,DCGM_FI_DEV_FB_USED\n0.3,0.1,900\n0.5,0.2,1000\n",
    ],
)
def test_samples_are_averaged_and_memory_is_the_most(text: str) -> None:
    usage = read_samples(text)
    assert (usage.compute, usage.bandwidth) == pytest.approx((0.4, 0.15))
    assert usage.memory_bytes == 1000 * MIB


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu_util,gmem_util,gmem\n", r"^line 2: there is no sample"),
        ("gpu_util,gmem\n1,2\n", r"^gmem_util: column is missing"),
        ("gpu_util,gmem_util,gmem\n1,2,3\n[N/A],2,3\n", r"^line 3, gpu_util: must be a number, is '\[N/A\]'"),
        ("gpu_util,gmem_util,gmem\n130,2,3\n", r"^line 2, gpu_util: must be from 0 to 101, is 130"),
    ],
)
def test_bad_samples_name_line_and_column(text: str, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        read_samples(text)
