"""A training script on shared storage. It writes down what it reads and saves, and when, in order.

Arguments: the checkpoint's path and the diary. A step takes 0.05 s, each tenth is saved.
"""

import os
import sys
import time

import synergy_job


def main() -> None:
    """Train to the end, or until the run has to leave."""
    checkpoint = synergy_job.Checkpoint(sys.argv[1])

    def note(what: str, step: int) -> None:
        with open(sys.argv[2], "a", encoding="utf-8") as diary:
            diary.write(f"{time.monotonic()} {os.environ['SYNERGY_RUN']} {what} {step}\n")

    def save(step: int) -> None:
        checkpoint.write({"step": step, "weights": [step] * 50_000})
        note("saved", step)

    def load() -> int | None:
        state = checkpoint.read()
        if state is None:
            return None
        assert state["weights"] == [state["step"]] * 50_000, "a torn checkpoint"
        note("read", state["step"])
        return int(state["step"])

    step = 0
    for step, _ in enumerate(synergy_job.iterate([0] * 100, save=save, load=load, checkpoint_every_steps=10), 1):
        time.sleep(0.05)
        note("trained", step)


main()
