"""`kube-synergy gpu measure`: with Debian's PyTorch on the CPU, and suspension of a process that really stops."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.job import debian_torch
from synergy_cli.colocation.tables import read_singles
from synergy_cli.gpu.measuring import Setting
from synergy_cli.gpu.models import MODELS
from synergy_cli.gpu.page import page
from synergy_cli.gpu.preemption import checkpoint_times, suspension
from synergy_cli.gpu.tables import tables
from synergy_cli.main import main

PYTHON = str(debian_torch.PYTHON)
ROOT = Path(__file__).parents[3]
PACKAGES = ":".join(str(ROOT / room) for room in ("cli", "job", "profiler-job", "core"))
MODEL = """
import sys, torch
from synergy_cli.gpu.models import build
model, inputs_of = build(torch, sys.argv[1])
told = model(inputs_of(2))
torch.nn.CrossEntropyLoss()(told, torch.tensor([1, 2])).backward()
assert all(one.grad is not None for one in model.parameters())
print(tuple(told.shape), sum(one.numel() for one in model.parameters()))
"""
TOGGLE = """#!/bin/sh
[ "$1 $2" = "--toggle --pid" ] || exit 9
case $(cut -d' ' -f3 /proc/$3/stat) in T) kill -CONT $3 ;; *) kill -STOP $3 ;; esac
"""
STEPS = """
import json, sys, threading, time
end = threading.Event()
print(json.dumps({"ready": True}), flush=True)
sys.stdin.readline()
threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
step = 0
while not end.is_set():
    time.sleep(0.01)
    step += 1
    print(json.dumps({"step": step, "at": time.monotonic()}), flush=True)
"""


def told(_: str) -> None:
    """Nobody listens."""


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("resnet", 11_173_962), ("vgg", 9_228_362), ("se-resnet", None), ("transformer", None)],
)
def test_each_model_of_the_thesis_trains(name: str, parameters: int | None) -> None:
    """With the number of parameters that the published models have for ten classes of small images."""
    debian_torch.required()
    answer = subprocess.run(
        [PYTHON, "-c", MODEL, name],
        env={**os.environ, "PYTHONPATH": PACKAGES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    shape, _, count = answer.stdout.strip().rpartition(" ")
    assert shape == "(2, 10)"
    assert parameters in (None, int(count))


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"resnet", "vgg", "se-resnet", "transformer"}))
def test_the_other_models_train_too(name: str) -> None:
    test_each_model_of_the_thesis_trains(name, None)


def test_one_command_makes_all_tables(tmp_path: Path) -> None:
    debian_torch.required()
    arguments = ["gpu", "measure", "--on-cpu", "--python", PYTHON, "--models", "mlp", "--batches", "1,2"]
    few = ["--pairs", "1", "--threes", "1", "--seconds", "0.5", "--out", str(tmp_path)]
    found = CliRunner().invoke(main, [*arguments, *few], env={"PYTHONPATH": PACKAGES})
    assert found.exit_code == 0, found.output
    document = json.loads((tmp_path / "cpu.json").read_text())
    assert document["device"] == "cpu"
    assert [one["batch"] for one in document["alone"]] == [1, 2]
    assert [len(one["models"]) for one in document["turns"]["groups"]] == [2, 3]
    (checkpoint,) = document["checkpoints"]
    assert checkpoint["save"]["bytes"] > 5_000_000 * 4  # parameters and momentum of the mlp
    assert all(seconds > 0 for seconds in checkpoint["load"].values())
    assert document["cpus"]["full_steps_per_s"][0] > 0
    text = (tmp_path / "cpu.md").read_text()
    assert "**These figures are of a CPU.**" in text
    assert "Not measured: cuda-checkpoint is not in PATH" in text
    assert (tmp_path / "cpu-single.csv").read_text().startswith("model,dataset")


def test_a_suspended_training_stands_still_and_goes_on(tmp_path: Path) -> None:
    environ = with_program(tmp_path, TOGGLE)
    memory = iter([900 << 20, 3 << 20])
    found = suspension(
        [Setting("mlp", 1)], environ, told, lambda _: [sys.executable, "-c", STEPS], lambda: next(memory)
    )
    (one,) = found["trainings"]
    assert "failed" not in one
    assert one["gpu_memory_bytes"] == {"running": 900 << 20, "suspended": 3 << 20}
    assert one["next_steps_seconds"] >= one["resume_seconds"] > 0


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho no driver >&2; exit 3\n", "cuda-checkpoint ended with 3: no driver"),
        ("no program", "cuda-checkpoint: "),
        ("#!/bin/sh\nkill -KILL $3; sleep 0.2\n", f"ended with exit code -{int(signal.SIGKILL)} before a step"),
    ],
)
def test_a_suspension_that_fails_says_why(tmp_path: Path, script: str, words: str) -> None:
    found = suspension(
        [Setting("mlp", 1)],
        with_program(tmp_path, script),
        told,
        lambda _: [sys.executable, "-c", STEPS],
        lambda: 0,
    )
    assert words in found["trainings"][0]["failed"]


def test_a_checkpoint_that_fails_says_why() -> None:
    (one,) = checkpoint_times(
        ["mlp"], os.environ, told, lambda *_: [sys.executable, "-c", "raise OSError('disk full')"]
    )
    assert one == {"model": "mlp", "failed": "    raise OSError('disk full') | OSError: disk full"} or (
        one["failed"].endswith("OSError: disk full")
    )
    (silent,) = checkpoint_times(["mlp"], os.environ, told, lambda *_: [sys.executable, "-c", ""])
    assert silent["failed"]
    (missing,) = checkpoint_times(["mlp"], os.environ, told, lambda *_: ["/nowhere/python"])
    assert "/nowhere/python" in missing["failed"]


def test_the_page_has_what_was_measured_and_why_the_rest_was_not() -> None:
    text = page(DOCUMENT)
    assert "| resnet | 64 | 20.00 | NVML-GPM | 50% | 30% | 25% | 90% | 1024 |" in text
    assert "| vgg | 64 | 10.00 | Utilization | - | - | - | 80% | 512 |" in text
    assert "| resnet-64 + vgg-64 | 25 / 75 | 40.00 / 12.50 | 0.50 / 0.80 | 0.75 |" in text
    assert "Mean delta of 2 jobs by their largest batch: 64: 1.20." in text
    assert "mean absolute error 0.050; 90% told rightly" in text
    assert "| resnet-64 | no driver | - | - | - | - |" in text
    assert "Not measured: no group was asked for, or all failed." in text
    assert "| vgg | disk full | - | - | - | - | - |" in text
    assert "- by turns: vgg-64 ended" in text
    assert "These figures are of a CPU" not in text


def test_counters_of_all_jobs_go_into_the_table_of_singles(tmp_path: Path) -> None:
    counted = {**DOCUMENT, "alone": DOCUMENT["alone"][:1]}
    for document, counters in ((counted, True), (DOCUMENT, False)):
        single, _ = tables(document)
        (tmp_path / "single.csv").write_text(single)
        usages = read_singles(tmp_path / "single.csv", counters=counters)
        usage = usages["resnet", "synthetic", "64", "0"]
        assert (usage.compute, usage.bandwidth) == ((0.5, 0.25) if counters else (0.9, 0.4))


def with_program(folder: Path, script: str) -> dict[str, str]:
    program = folder / "cuda-checkpoint"
    program.write_text(script)
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


DOCUMENT: dict[str, Any] = {
    "machine": {
        "gpu": "A100",
        "driver": "550",
        "cpus": 8,
        "processor": "P",
        "system": "Linux",
        "python": "3.11",
    },
    "measured_at": "2026-01-01",
    "device": "cuda",
    "alone": [
        {
            "model": "resnet",
            "batch": 64,
            "seconds_per_step": 0.02,
            "usage": {
                "source": "NVML-GPM",
                "compute": 0.5,
                "bandwidth": 0.25,
                "memory_bytes": 1 << 30,
                "occupancy": 0.3,
                "utilization": 0.9,
                "memory_utilization": 0.4,
                "problem": "",
            },
        },
        {
            "model": "vgg",
            "batch": 64,
            "seconds_per_step": 0.01,
            "usage": {
                "source": "Utilization",
                "compute": 0.8,
                "bandwidth": 0.4,
                "memory_bytes": 1 << 29,
                "occupancy": None,
                "utilization": None,
                "memory_utilization": None,
                "problem": "no GPM",
            },
        },
    ],
    "turns": {"groups": [], "by_batch": {}, "predicted": {}},
    "mps": {
        "groups": [
            {
                "models": ["resnet", "vgg"],
                "batches": [64, 64],
                "seconds_per_step": [0.025, 0.0125],
                "fractions": [0.8, 0.8],
                "delta": 1.2,
            }
        ],
        "by_batch": {"2": {"64": 1.2}},
        "predicted": {"effects": {"mae": 0.05, "share_accuracy": 0.9, "commoner": 0.6}, "sums": {"skipped": "too few"}},
    },
    "mps_limited": {
        "groups": [
            {
                "models": ["resnet", "vgg"],
                "batches": [64, 64],
                "seconds_per_step": [0.04, 0.0125],
                "fractions": [0.5, 0.8],
                "delta": 0.75,
                "thread_percent": [25, 75],
            }
        ]
    },
    "cpus": {"skipped": "one CPU"},
    "checkpoints": [
        {
            "model": "resnet",
            "save": {"bytes": 1 << 20, "seconds": 0.1},
            "load": {"import_seconds": 1, "build_seconds": 1, "load_seconds": 1, "first_step_seconds": 1},
        },
        {"model": "vgg", "failed": "disk full"},
    ],
    "suspension": {"trainings": [{"model": "resnet", "batch": 64, "failed": "no driver"}]},
    "failures": ["by turns: vgg-64 ended"],
}
