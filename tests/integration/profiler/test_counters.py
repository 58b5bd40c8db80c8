"""A profile run that reads GPU counters: of an exporter that serves them, of NVML's library, of Nsight Compute.

What they tell is written after the documented formats (`tests/support/counters`); only the GPUs are missing.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.counters import FOLDER, GPU, build_nvml, text
from support.job.harness import Harness
from support.job.process import wait_until
from synergy_devcluster.gpu_plugin.devices import prepare
from synergy_profiler.counters.collect import Counters
from synergy_profiler.counters.dcgm import DcgmError, DcgmSampler, scrape
from synergy_profiler.counters.load import own_gpus
from synergy_profiler.gpu_usage import GpuUsage

EXAMPLES = Path(__file__).parents[3] / "examples"
MIB = 1 << 20
QUICK = ("--warmup-steps", "2", "--steps", "20", "--min-seconds", "1", "--grace", "5")
TRAIN = f"""
    import sys, synergy_job
    sys.path.insert(0, {str(EXAMPLES)!r})
    from fake_device import FakeDevice
    from fake_mps import Client
    with Client(0.6, 3000, bandwidth=0.4) as client:
        device = FakeDevice(0.03, client)
        for _ in synergy_job.iterate([1, 2, 3]):
            device.launch()
"""


@pytest.fixture
def container(tmp_path: Path) -> dict[str, str]:
    """What a container of one fake GPU finds in its environment."""
    prepare(tmp_path, [GPU, "GPU-other"])
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "NVIDIA_VISIBLE_DEVICES": GPU, "FAKE_GPU_CLIENTS": str(tmp_path)}


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_nvml(tmp_path_factory.mktemp("nvml")))


@contextmanager
def exporter(*bodies: str) -> Iterator[str]:
    """The address of a server that answers with these texts one after the other, then with the last; an empty one is an
    error."""
    left = list(bodies)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(200 if body else 500)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def told(usage: dict[str, float]) -> tuple[float, float, float]:
    return usage["compute"], usage["bandwidth"], usage["occupancy"]


def test_a_profile_run_reads_the_nodes_exporter(harness: Harness, container: dict[str, str]) -> None:
    with exporter(text("dcgm.prom")) as url:
        begin = time.monotonic()
        settings = {"SYNERGY_DCGM_URL": url, "SYNERGY_DCGM_INTERVAL_S": "0.5"}
        run = harness.run(TRAIN, *QUICK, "--counters", "Auto", **container, **settings)
    usage = run.result["gpu"]
    assert (usage["source"], told(usage)) == ("DCGM", (0.4125, 0.225, 0.1875))
    assert usage["memory_bytes"] == 3000 * MIB
    assert 0.1 < usage["utilization"] <= 0.6, "nvidia-smi's stays beside it"
    assert run.result["seconds"] > 4, "twice the interval, and readings after it"
    assert time.monotonic() - begin < 60


def test_readings_count_once_they_tell_of_nothing_but_training() -> None:
    first, later = text("dcgm.prom"), text("dcgm.prom").replace("0.412500", "0.800000")
    with exporter(first, first, later) as url:
        sampler = DcgmSampler(url, 0.4, frozenset({GPU}))
        begin = time.monotonic()
        wait_until(lambda: len(sampler._samples) >= 4, "readings")
        sampler.stop()
        load = sampler.load(begin, time.monotonic())
    assert load is not None
    assert load.compute == pytest.approx(0.8), "the readings of the first two intervals tell of the time before"
    assert sampler.load(begin, begin + 0.7) is None
    assert "two collection intervals" in sampler.problem


def test_a_reading_that_is_missed_does_not_end_the_rest() -> None:
    good = text("dcgm.prom")
    with exporter(good, "", "", good) as url:
        sampler = DcgmSampler(url, 0.1, frozenset({GPU}))
        wait_until(lambda: len(sampler._samples) >= 2, "readings")
        sampler.stop()


def test_an_exporter_of_another_node_is_told_by_its_gpus() -> None:
    with exporter(text("dcgm.prom")) as url:
        with pytest.raises(DcgmError, match="of these GPUs"):
            DcgmSampler(url, 1.0, frozenset({"GPU-of-another-node"}))
        with pytest.raises(DcgmError, match="is not known"):
            DcgmSampler(url, 1.0, frozenset())
    for nowhere in (url, "http://[bad", "ftp://127.0.0.1:1/x"):
        with pytest.raises(DcgmError, match="does not answer"):
            scrape(nowhere)


def test_a_profile_run_asks_nvml_where_there_is_no_exporter(
    harness: Harness, container: dict[str, str], nvml: str
) -> None:
    settings = {"LD_LIBRARY_PATH": nvml, "FAKE_GPM": "41.25,18.75,22.5"}
    run = harness.run(TRAIN, *QUICK, "--counters", "Auto", **container, **settings)
    usage = run.result["gpu"]
    assert (usage["source"], told(usage)) == ("NVML-GPM", (0.4125, 0.225, 0.1875))
    assert 0.1 < usage["utilization"] <= 0.6


@pytest.mark.parametrize(
    ("gpm", "problem"),
    [
        ("ampere", "does not support NVML's GPM interface"),
        ("forbidden", "nvmlGpmSampleGet: NVML error 4, Insufficient Permissions"),
        ("none", "NVML sees no GPU here"),
        (None, "libnvidia-ml.so.1 cannot be loaded"),
    ],
)
def test_without_counters_the_reason_is_told(
    container: dict[str, str], nvml: str, gpm: str | None, problem: str
) -> None:
    environ = {**os.environ, **container}
    if gpm is not None:
        environ |= {"LD_LIBRARY_PATH": nvml, "FAKE_GPM": gpm}
    counters = Counters(environ)
    counters._sampler._reader.join(20)
    counters.stop()
    usage = counters.usage(GpuUsage(0.9, 0.5, 7), 0.0, time.monotonic())
    assert (usage.source, usage.compute) == ("Utilization", 0.9)
    assert usage.problem.startswith("no dcgm-exporter is set; ")
    assert problem in usage.problem


def test_an_exporter_that_does_not_answer_is_no_end(container: dict[str, str], nvml: str) -> None:
    settings = {"LD_LIBRARY_PATH": nvml, "FAKE_GPM": "10,5,2", "SYNERGY_DCGM_URL": "http://127.0.0.1:1/metrics"}
    counters = Counters({**os.environ, **container, **settings, "SYNERGY_DCGM_INTERVAL_S": "often"})
    wait_until(lambda: counters._sampler.load(0.0, time.monotonic()) is not None, "samples")
    counters.stop()
    usage = counters.usage(GpuUsage(0.9, 0.5, 7), 0.0, time.monotonic())
    assert (usage.source, usage.compute, usage.problem) == ("NVML-GPM", 0.1, "")
    counters._sampler._samples.clear()
    assert "127.0.0.1:1/metrics does not answer" in counters.usage(GpuUsage(0.9, 0.5, 7), 0.0, 1.0).problem


def test_the_containers_gpus_are_asked_for_where_its_environment_names_none(
    tmp_path: Path, container: dict[str, str]
) -> None:
    assert own_gpus(container) == {GPU}
    smi = tmp_path / "smi"
    smi.mkdir()
    (smi / "nvidia-smi").write_text("#!/bin/sh\necho GPU-a\necho GPU-b\n")
    (smi / "nvidia-smi").chmod(0o755)
    assert own_gpus({"PATH": f"{smi}:/bin", "NVIDIA_VISIBLE_DEVICES": "void"}) == {"GPU-a", "GPU-b"}
    (smi / "nvidia-smi").write_bytes(b"\x7fELF no program")
    assert own_gpus({"PATH": str(smi)}) == frozenset()
    assert own_gpus({"PATH": str(tmp_path / "nowhere")}) == frozenset()


def test_a_second_run_under_nsight_compute_tells_of_kernels(harness: Harness, container: dict[str, str]) -> None:
    container["PATH"] = f"{FOLDER}:{container['PATH']}"
    run = harness.run(TRAIN, *QUICK, "--counters", "Nsight", **container)
    usage = run.result["gpu"]
    busy = usage["utilization"]
    assert usage["source"] == "Nsight"
    assert usage["compute"] == pytest.approx(busy * 1.9e6 / 4e6, abs=1e-3)
    assert usage["bandwidth"] == pytest.approx(busy * 0.2, abs=1e-3)


@pytest.mark.parametrize(
    ("said", "problem"),
    [("forbidden", "ncu: ERR_NVGPUCTRPERM"), ("", "is not in the image's PATH"), ("still", "in time")],
)
def test_without_nsight_computes_figures_the_reason_is_told(
    harness: Harness, container: dict[str, str], tmp_path: Path, said: str, problem: str
) -> None:
    script = TRAIN
    if said:
        container |= {"PATH": f"{FOLDER}:{container['PATH']}", "FAKE_NCU": said}
    if said == "still":  # the second run does not train
        mark = tmp_path / "was-here"
        still = f"import os, time; os.path.exists({str(mark)!r}) and time.sleep(60); open({str(mark)!r}, 'w').close()"
        script = TRAIN.replace("import sys, synergy_job", f"import sys, synergy_job; {still}")
    run = harness.run(script, *QUICK, "--timeout", "6", "--counters", "Nsight", **container)
    assert run.result["outcome"] == "measured"
    assert run.result["gpu"]["source"] == "Utilization"
    assert problem in run.result["gpu"]["problem"]
