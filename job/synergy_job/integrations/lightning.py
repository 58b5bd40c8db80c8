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
from lightning.pytorch.trainer.states import RunningStage
from torch.utils.data import DistributedSampler

import synergy_job
from synergy_job.checkpoints.saved import Saved
from synergy_job.integrations.steps import Steps, check_processes
from synergy_job.loop.script import report_what_fits
from synergy_job.torch.loader import ResumableLoader, resumable, samplers_of
from synergy_job.torch.order import Order
from synergy_job.torch.randomness import mixed, random_states, restore_random_states, seed
from synergy_job.torch.together import Together

__all__ = ["JobCallback"]

_NAME_CHARACTERS = "_.-"
_NONE_OF_ITS_OWN: dict[str, Any] = {}


class JobCallback(pl.Callback):  # type: ignore[misc]
    """Steps, checkpoints, validations and metrics of a `Trainer`, told to the job. One step is one update.

    `folder` gets the trainer's own checkpoints. `options` are further ones of `synergy_job.iterate`, such as
    `checkpoint_every_steps`.
    """

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        self._saved = Saved(folder)
        self._options = options
        self._order = Order()
        self._together = Together()
        self._steps: Steps | None = None
        self._trainer: Any = None
        self._granted = -1
        self._random: dict[str, Any] | None = None
        self._ranks: list[dict[str, Any]] | None = None

    def checkpoint(self) -> str | None:
        """The file for `trainer.fit(ckpt_path=...)`, None where there is none. Raises `CheckpointError` if it is
        gone."""
        newest = self._saved.newest()
        return None if newest is None else self._saved.path(newest)

    def loader(self, loader: Any) -> Any:
        """`loader`, for `trainer.fit`: in the middle of an epoch it begins where the checkpoint was written.

        That needs a `DataLoader` over a map-style data set. Any other one is returned as it is. With several processes
        it gives each its part of every epoch, by the sampler that Lightning would choose, or by its own if that is a
        `DistributedSampler`. Raises ValueError when training starts if this version of Lightning cannot be asked.
        """
        return loader if resumable(loader, self._order) is loader else _Loader(loader, self)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """The trainer is known. Raises ValueError where it does not see all processes of the job."""
        check_processes(trainer.world_size, "give Trainer the processes of a node as devices, num_nodes and a strategy")
        self._trainer = trainer

    def state_dict(self) -> dict[str, Any]:
        """What Lightning's own checkpoint lacks."""
        return {**self._own_state(), "ranks": self._ranks}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The random numbers are restored when the first step begins."""
        ranks, rank, together = state_dict.get("ranks"), self._trainer.global_rank, self._trainer.world_size
        own = ranks[rank] if ranks is not None and len(ranks) == together else state_dict
        self._order.restore(own["order"])
        # what Lightning saves is of rank 0, and the other ranks must not draw its numbers
        self._random = own["random"] if rank == 0 or own is not state_dict else _NONE_OF_ITS_OWN

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The state is restored."""
        if self._random is _NONE_OF_ITS_OWN:
            seed(mixed(self._order.seed, trainer.global_rank, trainer.global_step))
        elif self._random is not None:
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

    @property
    def processes(self) -> int:
        """How many processes train; 0 until the trainer is known."""
        return 0 if self._trainer is None else int(self._trainer.world_size)

    def place(self) -> tuple[int, int]:
        """The epoch that the trainer is in, and how many of its batches are done."""
        progress = self._trainer.fit_loop.epoch_loop.batch_progress
        return self._trainer.current_epoch, progress.current.completed

    def part_of(self, loader: Any) -> ResumableLoader:
        """The batches of `loader` that this process trains on. The processes of a trainer call it together."""
        trainer = self._trainer
        if trainer is None or trainer.world_size == 1:
            return ResumableLoader(loader, self._order)
        # what the trainer does with a loader of PyTorch
        prepare = getattr(getattr(trainer, "_data_connector", None), "_prepare_dataloader", None)
        if prepare is None:
            raise ValueError(
                f"job.loader: Lightning {pl.__version__} shares data among processes in a way that is not known here: "
                "give trainer.fit the loader itself, with a DistributedSampler"
            )
        part = prepare(loader, shuffle=True, mode=RunningStage.TRAINING)
        self._order.part = (trainer.distributed_sampler_kwargs or {"rank": trainer.global_rank})["rank"]
        if part is not loader:
            self._order.share(self._together)
            for sampler in samplers_of(part):
                if isinstance(sampler, DistributedSampler):
                    sampler.seed = self._order.seed  # Lightning takes one that may be another in each process and run
        return ResumableLoader(part, self._order, inner=samplers_of(loader))

    def _save(self, step: int) -> None:
        name = self._together.from_first(lambda: self._saved.begin(step, ".ckpt"))
        self._ranks = self._together.gathered(self._own_state())
        self._trainer.save_checkpoint(os.path.join(self._saved.folder, name))
        self._ranks = None
        self._together.from_first(lambda: self._saved.record(step, name))

    def _own_state(self) -> dict[str, Any]:
        return {"random": random_states(), "order": self._order.state()}


class _Loader:
    """A loader that begins where the trainer is."""

    def __init__(self, loader: Any, job: JobCallback) -> None:
        self._loader = loader
        self._job = job
        self._part: tuple[int, ResumableLoader] | None = None

    def __len__(self) -> int:
        return len(self._of_this_process())

    def __iter__(self) -> Iterator[Any]:
        epoch, first = self._job.place()
        yield from self._of_this_process().iter_from(epoch, first)

    def _of_this_process(self) -> ResumableLoader:
        """Its part is known once the trainer is."""
        processes = self._job.processes
        if self._part is None or self._part[0] != processes:
            self._part = processes, self._job.part_of(self._loader)
        return self._part[1]

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
