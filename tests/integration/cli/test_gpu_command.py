"""`kube-synergy gpu`: without a GPU it says so; the measuring itself runs here on fake GPUs and a fake MPS daemon."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner, Result

from synergy_cli.colocation.tables import measurements_of, read_pairs, read_singles
from synergy_cli.gpu import pipeline
from synergy_cli.gpu.cpus import HarnessError, measured_cpus, run, speed_with
from synergy_cli.gpu.groups import LIMITS, Options, measured_groups, pairs_of, threes_of
from synergy_cli.gpu.machine import NoGpuError, find_gpu, machine
from synergy_cli.gpu.measuring import Setting, TrainingError, side_by_side
from synergy_cli.gpu.mps import MpsError, mps_daemon
from synergy_cli.gpu.tables import tables
from synergy_cli.gpu.training import WARM_UP_STEPS, train
from synergy_cli.main import main
from synergy_devcluster.gpu_plugin.devices import prepare

EXAMPLES = Path(__file__).parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
from fake_mps import fraction  # noqa: E402 - it is no package

GPU = "GPU-11111111-2222-3333-4444-555555555555"
TRAIN = f"""
import json, sys, threading, time
sys.path.insert(0, {str(EXAMPLES)!r})
from fake_device import FakeDevice
from fake_mps import Client
if sys.argv[1] == "broken":
    raise SystemExit("no such model")
compute = {{"light": 0.2, "heavy": 0.9}}[sys.argv[1]]
client = Client(compute, 1000, bandwidth=compute / 2)
device = FakeDevice(0.01, client)
end = threading.Event()
print(json.dumps({{"ready": True}}), flush=True)
sys.stdin.readline()
threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
step = 0
while not end.is_set():
    device.launch()
    step += 1
    print(json.dumps({{"step": step, "at": time.monotonic()}}), flush=True)
client.close()
"""
CONTROL = """#!/bin/sh
if [ "$1" = -d ]; then mkdir -p "$CUDA_MPS_PIPE_DIRECTORY/$CUDA_VISIBLE_DEVICES"; exit; fi
while read -r word rest; do
  case $word in
    get_server_list) echo 4242 ;;
    quit) touch "$CONTROL_QUIT" ;;
  esac
done
"""
LIGHT, HEAVY = Setting("light", 16), Setting("heavy", 256)
_ATTEMPTS = 30
"""Four seconds each."""


def command(setting: Setting) -> list[str]:
    return [sys.executable, "-c", TRAIN, setting.model, str(setting.batch)]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine with one fake GPU and MPS."""
    folder = tmp_path / "clients"
    prepare(folder, [GPU])
    control = folder / "nvidia-cuda-mps-control"
    control.write_text(CONTROL)
    control.chmod(0o755)
    return {
        "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "NVIDIA_VISIBLE_DEVICES": GPU,
        "FAKE_GPU_CLIENTS": str(folder),
        "CONTROL_QUIT": str(tmp_path / "quit"),
    }


def measured(environ: dict[str, str], *settings: Setting, pairs: int = 1, **more: int) -> dict[str, Any]:
    options = Options(settings=settings, most_pairs=pairs, settle_s=0.6, seconds=0.6, **more)
    return measured_groups(GPU, options, environ, lambda _: None, command)


def undisturbed(environ: dict[str, str]) -> dict[str, Any]:
    """Of some measurements one whose fractions are those of the fake GPU: a busy machine slows one or the other."""
    expected = [fraction(0.9, [0.2]), fraction(0.2, [0.9])]
    for _ in range(_ATTEMPTS):
        found = measured(environ, LIGHT, HEAVY)
        (turns,), (mps,) = found["turns"]["groups"], found["mps"]["groups"]
        # the fake GPU slows only who shares it under MPS
        ratios = [one / other for one, other in zip(mps["fractions"], turns["fractions"], strict=True)]
        if ratios == pytest.approx(expected, abs=0.12):
            return found
    pytest.fail(f"{ratios} are not about {expected} in any of {_ATTEMPTS} measurements")


def test_jobs_are_measured_alone_and_in_pairs_by_turns_and_under_mps(environ: dict[str, str], tmp_path: Path) -> None:
    found = undisturbed(environ)
    alone = {one["model"]: one for one in found["alone"]}
    assert alone["heavy"]["usage"]["memory_bytes"] == 1000 << 20
    assert 0.5 < alone["heavy"]["usage"]["compute"] <= 0.9
    (mps,) = found["mps"]["groups"]
    assert (mps["models"], mps["batches"]) == (["heavy", "light"], [256, 16])
    assert found["mps"]["by_batch"] == {"2": {"256": mps["delta"]}}
    assert "too few pairs" in found["mps"]["predicted"]["effects"]["skipped"]
    assert Path(environ["CONTROL_QUIT"]).exists(), "the daemon is ended"

    for name, text in zip(("single.csv", "pairs.csv"), tables(found), strict=True):
        (tmp_path / name).write_text(text)
    read = measurements_of(read_pairs(tmp_path / "pairs.csv", read_singles(tmp_path / "single.csv"), measured=True))
    assert [one.fractions for one in read] == [pytest.approx(tuple(mps["fractions"]), abs=1e-4)]


def test_what_cannot_be_measured_is_told_and_the_rest_is_measured(environ: dict[str, str]) -> None:
    os.unlink(Path(environ["FAKE_GPU_CLIENTS"]) / "nvidia-cuda-mps-control")
    found = measured(environ, LIGHT, Setting("broken", 1), pairs=9)
    assert [one["model"] for one in found["alone"]] == ["light"]
    assert (
        "broken-1 ended with exit code 1 before its first steps; its last words: no such model" in found["failures"][0]
    )
    assert [one["models"] for one in found["turns"]["groups"]] == [["light", "light"]]
    assert found["mps"] == {"skipped": "nvidia-cuda-mps-control is not in PATH; it comes with NVIDIA's driver"}
    with pytest.raises(TrainingError, match="no such model"):
        measured(environ, Setting("broken", 1))


def test_a_daemon_that_does_not_start_says_what_was_tried(environ: dict[str, str]) -> None:
    control = Path(environ["FAKE_GPU_CLIENTS"]) / "nvidia-cuda-mps-control"
    control.write_text(
        '#!/bin/sh\necho "no device" > "$CUDA_MPS_LOG_DIRECTORY/control.log"; echo refused >&2; exit 3\n'
    )
    words = "`nvidia-cuda-mps-control -d` ended with 3: refused; control.log: no device"
    with pytest.raises(MpsError) as error, mps_daemon(GPU, environ):
        pass
    assert str(error.value) == words
    control.write_text('#!/bin/sh\n[ "$1" = -d ] && exit; read -r word rest; [ "$word" != start_server ]\n')
    with pytest.raises(MpsError, match="with 'start_server -uid"), mps_daemon(GPU, environ):
        pass


def test_a_server_that_does_not_come_is_waited_for_and_told(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synergy_cli.gpu.mps._SERVER_S", 0.3)
    control = Path(environ["FAKE_GPU_CLIENTS"]) / "nvidia-cuda-mps-control"
    control.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(MpsError, match=r"no server of it came within 0\.3 s"), mps_daemon(GPU, environ):
        pass


def test_a_training_that_stops_telling_steps_is_given_up(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synergy_cli.gpu.measuring.START_S", 1.0)
    silent = [sys.executable, "-c", "import sys; print('{\"ready\": 1}', flush=True); sys.stdin.read()"]
    with pytest.raises(TrainingError, match="light-16: enough of its steps did not come in time"):
        side_by_side([LIGHT], lambda _: silent, environ, settle_s=0.0, seconds=0.1)


def test_pairs_are_spread_over_all_settings() -> None:
    settings = [Setting(model, batch) for model in "abcd" for batch in (1, 2, 3)]
    some = pairs_of(settings, 12)
    assert len(set(some)) == 12
    assert {one for pair in some for one in pair} == set(settings)
    assert len(pairs_of(settings, 1000)) == 12 * 13 // 2


def test_threes_have_one_batch_size_and_are_spread_over_the_models() -> None:
    settings = [Setting(model, batch) for model in "abcd" for batch in (1, 2, 3)]
    some = threes_of(settings, 12)
    assert len(set(some)) == 12
    assert all(len({one.batch for one in three}) == 1 for three in some)
    assert {one for three in some for one in three} == set(settings)
    assert len(threes_of(settings, 1000)) == 3 * 20  # of 4 models, with repetition
    assert threes_of(settings, 0) == []


def test_limits_on_threads_bound_what_a_job_keeps(environ: dict[str, str]) -> None:
    """With a quarter of the threads a job that keeps 90 % of the GPU busy has 28 % of its speed."""
    found = measured(environ, HEAVY, most_limited=1, most_threes=1)
    limited = found["mps_limited"]["groups"]
    assert [tuple(one["thread_percent"]) for one in limited] == list(LIMITS)
    quarter, most = limited[0]["fractions"]
    assert quarter < 0.75 * most
    assert quarter < 0.4
    assert {len(one["models"]) for one in found["mps"]["groups"]} == {2, 3}
    assert set(found["mps"]["by_batch"]) == {"2", "3"}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a curve needs two CPUs")
def test_the_search_s_curve_is_compared_with_every_cpu_count() -> None:
    script = """
        import sys, time, synergy_job
        moment = time.monotonic()
        for _ in synergy_job.iterate([1]):
            moment = max(moment, time.monotonic()) + 0.02 / int(sys.argv[1])
            time.sleep(max(0, moment - time.monotonic()))
    """
    words = "\n".join(line[8:] for line in script.splitlines())
    quick = ("--warmup-steps", "2", "--steps", "20", "--min-seconds", "0")
    run = lambda cpus: [sys.executable, "-c", words, str(cpus)]  # noqa: E731
    found = measured_cpus(2, os.environ, lambda _: None, run, quick)
    assert found["cpu_millis"] == [1000, 2000]
    assert found["full_steps_per_s"][0] < found["full_steps_per_s"][1] <= 101
    assert found["worst_error"] == pytest.approx(
        max(abs(c / f - 1) for c, f in zip(found["curve_steps_per_s"], found["full_steps_per_s"], strict=True))
    )
    with pytest.raises(HarnessError, match="with 1 CPUs: the command ended with exit code 7"):
        speed_with(1, [sys.executable, "-c", "raise SystemExit(7)"], os.environ, quick)


def test_a_measurement_that_takes_too_long_is_ended_with_all_that_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synergy_cli.gpu.cpus._PATIENCE_S", 1.5)
    mine = tmp_path / "pid"
    words = f"import os, pathlib, time; pathlib.Path({str(mine)!r}).write_text(str(os.getpid())); time.sleep(600)"
    with pytest.raises(HarnessError, match="with 1 CPUs the harness left no result"):
        speed_with(1, [sys.executable, "-c", words], os.environ)
    assert not mine.exists() or not Path(f"/proc/{mine.read_text()}").exists()


def test_a_harness_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synergy_cli.gpu.cpus._PATIENCE_S", 0.5)
    monkeypatch.setattr("synergy_cli.gpu.cpus._GRACE_S", 0.2)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        run([sys.executable, "-c", deaf], os.environ, sorted(os.sched_getaffinity(0))[:1])


@pytest.mark.parametrize(("device", "waits"), [("cuda", 4), ("cpu", 0)])
def test_a_training_says_when_it_is_ready_and_what_it_has_done(
    device: str, waits: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop itself, on a library that computes nothing."""
    begin, end = threading.Event(), threading.Event()
    begin.set()
    steps = iter(range(WARM_UP_STEPS + 12))

    def step() -> None:
        if next(steps, None) is None:
            end.set()

    torch = MagicMock()
    torch.optim.SGD.return_value.step.side_effect = step
    monkeypatch.setitem(sys.modules, "torch", torch)
    train("mlp", 4, device, begin, end)
    ready, *told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ready == {"ready": True}
    assert [one["step"] for one in told] == [5, 10, 15]
    assert torch.cuda.synchronize.call_count == waits


def test_the_pipeline_feeds_what_stands_in_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, batches = MagicMock(), [("images", "labels")] * 3
    torch.utils.data.DataLoader.return_value = batches
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(sys, "argv", ["pipeline", "2", "0.01"])
    slept: list[float] = []
    monkeypatch.setattr("synergy_cli.gpu.pipeline.time.sleep", slept.append)
    pipeline.main()
    assert slept == [0.01] * 3
    assert torch.utils.data.DataLoader.call_args.kwargs["num_workers"] == 2


def test_the_machine_is_described(environ: dict[str, str]) -> None:
    gpu = find_gpu(environ)
    assert (gpu.uuid, gpu.name, gpu.memory_bytes) == (GPU, "Fake GPU", 16 << 30)
    assert machine(gpu)["cpus"] == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo NVIDIA-SMI has failed; exit 9", "nvidia-smi ended with 9: NVIDIA-SMI has failed"),
        ("exit 0", "nvidia-smi ended with 0: nothing"),
        ("echo one, two", "nvidia-smi lists no GPU as expected: 'one, two'"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_told_apart(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(NoGpuError, match=words):
        find_gpu({"PATH": f"{tmp_path}:{os.environ['PATH']}"})


def invoke(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main, ["gpu", *arguments], env=environ)


@pytest.mark.parametrize("name", ["measure", "measure-pairs", "measure-cpus"])
def test_without_a_gpu_the_commands_skip_with_a_word_on_why(name: str, tmp_path: Path) -> None:
    skipped = "there is no NVIDIA GPU here: nvidia-smi is not in PATH"
    found = invoke(name, PATH=str(tmp_path))
    assert (found.exit_code, found.stdout) == (0, f"skipped: {skipped}\n")
    assert json.loads(invoke(name, "--json", PATH=str(tmp_path)).stdout) == {"skipped": skipped}


def test_without_pytorch_too(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synergy_cli.gpu.commands.lacking_module", lambda _: "torch")
    assert f"skipped: {sys.executable} has no torch: install it there" in invoke("measure-pairs", **environ).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["measure-pairs", "--models", "mlp,magic"], "--models: 'magic' is not there; choose one of resnet, vgg"),
        (["measure-pairs", "--batches", "16,many"], "--batches: '16,many' must be whole numbers"),
        (["measure-pairs", "--batches", "0"], "--batches: 0 must be at least 1"),
        (["measure-cpus", "--most", "4096"], "--most: 4096 is more than the"),
        (["measure-cpus", "--stand-in", "nan"], "--stand-in"),
        (["measure", "--threes", "-1"], "--threes"),
        (["measure", "--models", "magic"], "--models: 'magic' is not there; choose one of resnet, vgg"),
        (
            ["measure", "--on-cpu", "--python", "/nowhere/python"],
            "--python: /nowhere/python cannot be run: No such file",
        ),
    ],
)
def test_bad_options_are_refused_by_name(arguments: list[str], words: str) -> None:
    found = invoke(*arguments)
    assert found.exit_code == 2
    assert words in found.stderr


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synergy_cli.gpu.commands.lacking_module", lambda _: None)
    (tmp_path / "file").touch()
    found = invoke("measure", "--on-cpu", "--out", str(tmp_path / "file"))
    assert found.exit_code == 2
    assert f"--out: the folder {tmp_path}/file cannot be made: File exists" in found.stderr


def test_figures_are_written_with_the_machine_they_are_of(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("synergy_cli.gpu.commands.lacking_module", lambda _: None)
    figures = {"alone": [], "turns": {"groups": []}, "mps": {"groups": []}, "failures": []}
    monkeypatch.setattr("synergy_cli.gpu.commands.measured_groups", lambda *_: figures)
    monkeypatch.setattr("synergy_cli.gpu.commands.measured_cpus", lambda *_, **__: {"worst_error": 0.01})
    found = invoke("measure-pairs", "--tables", str(tmp_path), **environ)
    assert found.stdout == "docs/measurements/fake-gpu-pairs.json\n"
    written = json.loads((tmp_path / found.stdout.strip()).read_text())
    assert (written["machine"]["gpu"], written["failures"]) == ("Fake GPU", [])
    assert (tmp_path / "single.csv").read_text().startswith("model,dataset,batchsize")
    assert json.loads(invoke("measure-cpus", "--json", **environ).stdout)["worst_error"] == 0.01
    without = invoke("measure-cpus", "--stand-in", "0.04", PATH=str(tmp_path))
    assert without.stdout == "docs/measurements/none-0-04-s-for-a-step-cpus.json\n"
    missing = invoke("measure-pairs", "--tables", str(tmp_path / "nowhere"), **environ)
    assert (missing.exit_code, "--tables: there is no folder" in missing.stderr) == (2, True)
