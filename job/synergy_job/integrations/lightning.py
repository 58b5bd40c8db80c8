"""The `Trainer` of Lightning (2.0 or newer) in a TrainingJob.

    from synergy_job.integrations.lightning import JobCallback

    job = JobCallback("/checkpoints")
    trainer = lightning.Trainer(callbacks=[job], max_epochs=-1)
    trainer.fit(model, job.loader(loader), ckpt_path=job.checkpoint())

The folder must be on a volume that outlives the pod.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import lightning.pytorch as pl

import synergy_job
from synergy_job.checkpoints.saved import Saved
from synergy_job.integrations.steps import Steps
from synergy_job.loop.script import report_what_fits
from synergy_job.torch.loader import resumable
from synergy_job.torch.order import Order
from synergy_job.torch.randomness import random_states, restore_random_states

__all__ = ["JobCallback"]

_NAME_CHARACTERS = "_.-"


class JobCallback(pl.Callback):  # type: ignore[misc]
    """Steps, checkpoints, validations and metrics of a `Trainer`, told to the job. One step is one update.

    `folder` gets the trainer's own checkpoints. `options` are further ones of `synergy_job.iterate`, such as
    `checkpoint_every_steps`.
    """

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        self._saved = Saved(folder)
        self._options = options
        self._order = Order()
        self._steps: Steps | None = None
        self._trainer: Any = None
        self._granted = -1
        self._random: dict[str, Any] | None = None

    def checkpoint(self) -> str | None:
        """The file for `trainer.fit(ckpt_path=...)`, None where there is none. Raises `CheckpointError` if it is
        gone."""
        newest = self._saved.newest()
        return None if newest is None else self._saved.path(newest)

    def loader(self, loader: Any) -> Any:
        """`loader`, for `trainer.fit`: in the middle of an epoch it begins where the checkpoint was written.

        That needs a `DataLoader` over a map-style data set. Any other one is returned as it is.
        """
        made = resumable(loader, self._order)
        return loader if made is loader else _Loader(made, self)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """The trainer is known."""
        self._trainer = trainer

    def state_dict(self) -> dict[str, Any]:
        """What Lightning's own checkpoint lacks."""
        return {"random": random_states(), "order": self._order.state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The random numbers are restored when the first step begins."""
        self._order.restore(state_dict["order"])
        self._random = state_dict["random"]

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The state is restored."""
        if self._random is not None:
            restore_random_states(self._random)
        batches = trainer.num_training_batches
        options = {"save_on": "all" if trainer.world_size > 1 else "first", "model": pl_module, **self._options}
        self._steps = Steps(
            save=self._save,
            load=lambda: trainer.global_step or None,
            epoch_steps=-(-batches // trainer.accumulate_grad_batches) if batches != float("inf") else None,
            **options,
        )

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """An update is done, unless batches are accumulated for the next one: may another one begin?

        This is the place where the trainer's progress has all of the batch before and nothing of this one.
        """
        if self._steps is None or trainer.global_step == self._granted:
            return
        if not self._steps.next():
            trainer.should_stop = True
            raise StopIteration  # as the hook of a module does by returning -1
        self._granted = trainer.global_step

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """What the module logs is reported as often as the trainer logs it."""
        if trainer.global_step % trainer.log_every_n_steps == 0:
            report_what_fits(_metrics(trainer.callback_metrics))

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """A pause begins."""
        if self._steps is not None:
            self._steps.pause(lambda: synergy_job.pause("validation"))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """The pause is over."""
        if self._steps is not None:
            self._steps.resume()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """The trainer has ended, because of the job or by itself."""
        if self._steps is not None:
            self._steps.end(f"the Trainer ended after step {trainer.global_step}", begun=True)

    def place(self) -> tuple[int, int]:
        """The epoch that the trainer is in, and how many of its batches are done."""
        progress = self._trainer.fit_loop.epoch_loop.batch_progress
        return self._trainer.current_epoch, progress.current.completed

    def _save(self, step: int) -> None:
        name = f"step-{step}.ckpt"
        self._trainer.save_checkpoint(os.path.join(self._saved.folder, name))
        if self._trainer.is_global_zero:
            self._saved.record(step, name)


class _Loader:
    """A loader that begins where the trainer is."""

    def __init__(self, loader: Any, job: JobCallback) -> None:
        self._loader = loader
        self._job = job

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        epoch, first = self._job.place()
        yield from self._loader.iter_from(epoch, first)

    def state_dict(self) -> dict[str, Any]:
        """Its place is the trainer's. That it has this method tells Lightning that it can be resumed."""
        return {"follows": "the trainer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to restore."""


def _metrics(logged: Any) -> dict[str, float]:
    """The logged values under names that a job may give them: `val/loss` is `val.loss`."""
    dotted = sorted((name.replace("/", "."), value) for name, value in logged.items())
    named = {name[:32]: value for name, value in dotted if name[:1].isalpha() and _plain(name)}
    return {name: float(value) for name, value in named.items()}


def _plain(name: str) -> bool:
    return all(one.isascii() and (one.isalnum() or one in _NAME_CHARACTERS) for one in name)
