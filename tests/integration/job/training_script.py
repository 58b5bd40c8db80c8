"""A training script whose state is the list of the batches it was trained on. Run as a process by the tests."""

import argparse
import atexit
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import synergy_job
import synergy_job.gang.base

parser = argparse.ArgumentParser()
parser.add_argument("--folder", type=Path, required=True)
parser.add_argument("--step-ms", type=float, default=2)
parser.add_argument("--jitter-ms", type=float, default=0, help="each step takes up to this much longer, by chance")
parser.add_argument("--epoch", type=int, default=7, help="batches in an epoch")
parser.add_argument("--slow-batch", type=int, default=-1, help="this batch is made once the file `go` is there")
parser.add_argument("--hang-at", type=int, default=-1, help="the body of this step never ends")
parser.add_argument("--deaf", action="store_true", help="while it hangs, SIGTERM does not reach it")
parser.add_argument("--crash-at", type=int, default=-1, help="the body of this step raises")
parser.add_argument("--break-at", type=int, default=-1, help="the loop is broken off in the body of this step")
parser.add_argument("--die-at", type=int, default=-1, help="the process is killed in the body of this step")
parser.add_argument("--save-ms", type=float, default=0)
parser.add_argument("--save-fails", action="store_true")
parser.add_argument("--save-on", default="first")
parser.add_argument("--shared", action="store_true", help="all ranks load what rank 0 saved")
parser.add_argument("--every-steps", type=int)
parser.add_argument("--every-seconds", type=float)
parser.add_argument("--no-checkpoint", action="store_true")
parser.add_argument("--load-returns", type=json.loads, default="0", help="where there is no state file")
parser.add_argument("--helper", action="store_true", help="fork a process within the loop, as a loader does")
parser.add_argument("--finish-at", type=int, default=-1, help="end training early in the body of this step")
parser.add_argument("--finish-rank", default="0", help="the process that does so")
parser.add_argument("--pause-ms", type=float, default=0, help="evaluate after each fifth step, for so long")
parser.add_argument("--no-len", action="store_true", help="the loader does not know how long it is")
parser.add_argument("--once", action="store_true", help="the loader is an iterator that ends after an epoch")
parser.add_argument("--reports", action="store_true", help="report a loss")
parser.add_argument("--impatient", action="store_true", help="give a broken gang up soon")
given = parser.parse_args()

RANK = os.environ.get("RANK", "0")
state: dict[str, list[int]] = {"batches": []}
saves = given.folder / f"saves-{RANK}"
atexit.register((given.folder / f"atexit-{RANK}").touch)
if given.impatient:
    synergy_job.gang.base.INTERRUPT_AFTER_S, synergy_job.gang.base.EXIT_AFTER_S = 0.5, 1.5


def state_file(rank: str) -> Path:
    return Path(given.folder) / f"state-{rank}.json"


def save(step: int) -> None:
    if given.save_fails:
        raise OSError("disk full")
    time.sleep(given.save_ms / 1000)
    with synergy_job.atomic_file(state_file(RANK)) as file:
        file.write(json.dumps({"step": step, **state}).encode())
    with saves.open("a") as log:
        log.write(f"{step}\n")


def load() -> int | None:
    file = state_file("0" if given.shared else RANK)
    if not file.exists():
        return None if given.load_returns == 0 else given.load_returns
    found = json.loads(file.read_text())
    state["batches"] = found["batches"]
    return int(found["step"])


class Loader:
    """Seven batches an epoch, by default: 0 to 6, then 100 to 106, ..."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return int(given.epoch)

    def __iter__(self):
        for number in range(given.epoch):
            if self.epoch == 0 and number == given.slow_batch:
                (given.folder / "waiting").touch()
                while not (given.folder / "go").exists():
                    time.sleep(0.01)
            yield 100 * self.epoch + number


def helper() -> None:
    """What a loader's process does until it is told to end."""
    time.sleep(3600)


def hang() -> None:
    if given.deaf:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    time.sleep(3600)


def body(batch: int) -> None:
    number = len(state["batches"]) + 1
    if number == given.crash_at:
        raise ValueError("bad batch")
    if number == given.die_at:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == given.hang_at:
        hang()
    if number == given.finish_at and given.finish_rank == RANK:
        synergy_job.finish("the loss is  low enough")
    if given.reports:
        synergy_job.report(loss=1 / number, lr=float("nan") if number % 2 else 0.1)
    if given.pause_ms and number % 5 == 0:
        with synergy_job.pause("evaluation"):
            time.sleep(given.pause_ms / 1000)
    time.sleep((given.step_ms + random.uniform(0, given.jitter_ms)) / 1000)
    state["batches"].append(batch)
    with (given.folder / f"bodies-{RANK}").open("a") as log:
        log.write(f"{number}\n")


def loader():
    if given.once:
        return iter(Loader())
    return (lambda epoch: range(100 * epoch, 100 * epoch + given.epoch)) if given.no_len else Loader()


forked: list[multiprocessing.Process] = []
checkpoints = {} if given.no_checkpoint else {"save": save, "load": load}
try:
    for one in synergy_job.iterate(
        loader(),
        **checkpoints,
        checkpoint_every_steps=given.every_steps,
        checkpoint_every_seconds=given.every_seconds,
        save_on=given.save_on,
    ):
        if given.helper and not forked:
            forked.append(multiprocessing.get_context("fork").Process(target=helper))
            forked[0].start()
            (given.folder / f"helper-{RANK}").write_text(str(forked[0].pid))
        body(one)
        if len(state["batches"]) == given.break_at:
            break
finally:
    (given.folder / f"finally-{RANK}").touch()
    for process in forked:
        process.terminate()
        process.join()
        sys.stdout.write(f"helper ended with {process.exitcode}\n")
sys.stdout.write(f"trained {len(state['batches'])}\n")
