"""The `Trainer` of Hugging Face in a TrainingJob.

    from synergy_job.integrations.transformers import train

    trainer = transformers.Trainer(model, args, train_dataset=data)
    train(trainer)                      # in place of trainer.train()

`args.output_dir` must be on a volume that outlives the pod.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import transformers

import synergy_job
from synergy_job.checkpoints.fence import FencedError
from synergy_job.checkpoints.saved import Saved
from synergy_job.integrations.steps import Steps, check_processes, finite
from synergy_job.loop.script import report_what_fits
from synergy_job.torch.together import Together

__all__ = ["JobCallback", "train"]

log = logging.getLogger("synergy_job")

_METRICS = {"loss": "loss", "learning_rate": "learning_rate", "eval_loss": "eval_loss", "grad_norm": "grad_norm"}


def train(trainer: Any, **options: Any) -> Any:
    """What `trainer.train()` returns, after the steps that the job or the trainer has, whichever ends first.

    Goes on from the job's newest checkpoint. When the job must leave, the trainer's own checkpoint is written to its
    `output_dir`, and `SystemExit(75)` is raised. `options` are further ones of `synergy_job.iterate`, such as
    `checkpoint_every_steps`. Raises `CheckpointError` if the newest checkpoint is gone, and `ValueError` if the trainer
    does not see all processes of the job.
    """
    callback = JobCallback(trainer, **options)
    trainer.add_callback(callback)
    return trainer.train(resume_from_checkpoint=callback.checkpoint())


class JobCallback(transformers.TrainerCallback):  # type: ignore[misc]
    """Steps, checkpoints, evaluations and metrics of a `Trainer`, told to the job. One step is one update."""

    def __init__(self, trainer: Any, **options: Any) -> None:
        check_processes(trainer.args.world_size, "give TrainingArguments ddp_backend='nccl', or 'gloo' on CPUs")
        self._trainer = trainer
        self._options = options
        self._saved = Saved(trainer.args.output_dir)
        self._together = Together()
        self._steps: Steps | None = None
        if trainer.args.save_total_limit == 1:
            # the trainer removes what it wrote before as soon as it has written the next one, which counts only once
            # it is recorded: a worker that ends in between would leave none
            trainer.args.save_total_limit = 2

    def checkpoint(self) -> str | None:
        """The folder for `trainer.train(resume_from_checkpoint=...)`, None where there is none."""
        newest = self._saved.newest()
        return None if newest is None else self._saved.path(newest)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The state is restored: the first step may begin."""
        loader = kwargs.get("train_dataloader")
        options = {"save_on": "all" if args.world_size > 1 else "first", "model": self._trainer.model, **self._options}
        self._steps = Steps(
            save=self._save,
            load=lambda: state.global_step or None,
            epoch_steps=_epoch_steps(loader, args.gradient_accumulation_steps),
            **options,
        )
        if not self._steps.next():
            control.should_training_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An update is done."""
        if self._steps is not None and not self._steps.next():
            control.should_training_stop = True
        self._claim_for_own(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An epoch is done, after which the trainer may save."""
        self._claim_for_own(control)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The trainer has written a checkpoint of its own (`save_strategy`), and may have removed the recorded one
        (`save_total_limit`): the job goes on from the new one. The trainer decides how long it stays."""
        self._together.gathered(None)  # each process has written its files: newer versions do not wait for that
        if not getattr(args, "save_only_model", False):
            with suppress(FencedError):  # the step that follows does what has to be done then
                self._record(state.global_step, own=False)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The first one of an evaluation begins a pause."""
        if self._steps is not None:
            self._steps.pause(lambda: synergy_job.pause("evaluation"))

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The evaluation is over."""
        if self._steps is not None:
            self._steps.resume()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """What the trainer logs is reported."""
        report_what_fits(finite(logs or {}, _METRICS))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The trainer has ended, because of the job or by itself."""
        if self._steps is not None:
            self._steps.end(f"the Trainer ended after step {state.global_step}", begun=False)

    def _claim_for_own(self, control: Any) -> None:
        """The trainer is about to write a checkpoint of its own: not where a newer run has the folder."""
        if not control.should_save:
            return
        try:
            self._together.from_first(self._saved.claim)
        except FencedError as error:
            log.warning("%s; the Trainer's own checkpoint is left out", error)
            control.should_save = False

    def _save(self, step: int) -> None:
        trainer = self._trainer
        self._together.from_first(self._saved.claim)
        self._together.each(lambda: trainer._save_checkpoint(trainer.model_wrapped, None))
        self._record(step)

    def _record(self, step: int, *, own: bool = True) -> None:
        self._together.from_first(lambda: self._saved.record(step, f"checkpoint-{step}", own=own))


def _epoch_steps(loader: Any, accumulated: int) -> int | None:
    """Updates in an epoch, as the trainer counts them."""
    try:
        return max(1, len(loader) // accumulated)
    except TypeError:
        return None
