"""The same small training by each framework that owns the loop: `training.py FRAMEWORK FOLDER [OPTION...]`.

Dropout and a shuffled order make the random numbers count. Each step's loss goes to the file `losses`, the weights at
the end to `weights`. The file `steps-RANK` has the samples and the loss of each step of a rank. With `every=N` the
library saves each N steps; with `taken=N` a newer run claims the checkpoints after N losses. With `late=yes` the
storage shows that claim on rank 0 alone. With `seeds=own` each process of each run has a seed of its own. With
`nodes=N` Lightning is told that the processes are on N nodes. With `slow=yes` rank 1 is slow to write, and the file
`recorded` has the files that a checkpoint has when it first counts.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import torch

from synergy_job.checkpoints.saved import Saved
from synergy_job.checkpoints.version import Writer, writer_of
from synergy_job.checkpoints.versions import Versions

FRAMEWORK, FOLDER, *OPTIONS = sys.argv[1:]
given = dict(option.split("=") for option in OPTIONS)
RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
NODES = int(given.get("nodes", "1"))
EVERY = {"checkpoint_every_steps": int(given["every"])} if "every" in given else {}
STEPS, STEP_S = int(given.get("steps", "1000000")), float(given.get("step_s", "0"))
torch.manual_seed(7)
torch.set_num_threads(1)
INPUTS = torch.randn(96, 8)
TARGETS = INPUTS.sum(dim=1, keepdim=True)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return len(INPUTS)

    def __getitem__(self, index):
        # the Trainer of Hugging Face makes a batch ahead, so random numbers of the data set are not repeated with it
        noise = 0.0 if FRAMEWORK == "transformers" else 0.1 * torch.randn(8)
        return {"x": INPUTS[index] + noise, "labels": TARGETS[index], "index": index}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
        )

    def forward(self, x, labels=None, index=None):
        time.sleep(STEP_S)
        loss = torch.nn.functional.mse_loss(self.layers(x), labels)
        if self.training:
            if len(losses()) >= int(given.get("taken", "1000000")):
                mine = writer_of(os.environ)
                Versions(str(Path(FOLDER) / "out" / "synergy_job.pkl"), Writer(mine.job, mine.run + 1)).claim()
            with (Path(FOLDER) / "losses").open("a") as file:
                file.write(f"{loss.item()!r}\n")
            with (Path(FOLDER) / f"steps-{RANK}").open("a") as file:
                file.write(json.dumps({"samples": index.tolist(), "loss": loss.item()}) + "\n")
        return {"loss": loss}


def losses():
    file = Path(FOLDER) / "losses"
    return file.read_text().split() if file.exists() else []


class DataOfEpoch(Data):
    """Its samples are others in each epoch."""

    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return {**sample, "labels": sample["labels"] + self.epoch}


class Turning(torch.utils.data.DistributedSampler):
    """A rank gets one half of the data. Each epoch begins 8 samples further on."""

    def __iter__(self):
        half = len(INPUTS) // 2
        return iter([half * self.rank + (self.epoch * 8 + place) % half for place in range(half)])


model = Model()
if "seeds" in given:
    torch.manual_seed(1000 * int(os.environ["SYNERGY_RUN"]) + RANK)
if given.get("slow"):
    record, save = Saved.record, torch.save

    def told(self, step, name, **more):
        if not (Path(FOLDER) / "recorded").exists():
            (Path(FOLDER) / "recorded").write_text(" ".join(os.listdir(self.path({"name": name}))))
        record(self, step, name, **more)

    def slow(*content):
        time.sleep(1)
        save(*content)

    Saved.record = told
    torch.save = slow if RANK else save
if given.get("late") and os.environ["RANK"] != "0":
    Versions._newest_claim = lambda _: (1, 0)


def by_transformers():
    from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

    from synergy_job.integrations.transformers import train

    class NewerTrainer(Trainer):
        """Its processes do not wait for each other when they save, as in newer versions."""

        def _save_checkpoint(self, *_, **__):
            folder = str(Path(FOLDER) / "out" / f"checkpoint-{self.state.global_step}")
            self.save_model(folder, _internal_call=True)
            self._save_optimizer_and_scheduler(folder)
            self._save_rng_state(folder)

    stops = given.get("early") == "yes"
    saves = "epoch" if given.get("epochs") else "steps" if stops or given.get("keep") else "no"
    args = TrainingArguments(
        output_dir=str(Path(FOLDER) / "out"), max_steps=STEPS, per_device_train_batch_size=8, use_cpu=True,
        save_strategy=saves, save_steps=10, eval_steps=10,
        evaluation_strategy="steps" if stops or given.get("evaluate") else "no", report_to=[], logging_steps=5,
        disable_tqdm=True, load_best_model_at_end=stops, metric_for_best_model="loss", lr_scheduler_type="constant",
        save_total_limit=int(given["keep"]) if "keep" in given else None,
    )  # fmt: skip
    early = [EarlyStoppingCallback(early_stopping_patience=1, early_stopping_threshold=1e9)] if stops else []
    made = NewerTrainer if given.get("slow") else Trainer
    train(made(model, args, train_dataset=Data(), eval_dataset=Data(), callbacks=early), **EVERY)


def by_lightning():
    import lightning.pytorch as pl

    from synergy_job.integrations.lightning import JobCallback

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def _register_sharded_tensor_state_dict_hooks_if_available(self):
            """Nothing: this part of PyTorch 1.13 cannot be imported by Python 3.11."""

        def training_step(self, batch, _):
            loss = self.model(**batch)["loss"]
            self.log("train/loss" if given.get("odd_name") else "loss", loss)
            return loss

        def validation_step(self, batch, _):
            self.model(**batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    if "seeds" in given:
        pl.seed_everything(1000 * int(os.environ["SYNERGY_RUN"]) + RANK)
    job = JobCallback(Path(FOLDER) / "out", **EVERY)
    trainer = pl.Trainer(
        max_steps=STEPS, max_epochs=-1, accelerator="cpu", callbacks=[job], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=5,
        accumulate_grad_batches=int(given.get("accumulate", "1")), devices=RANKS // NODES, num_nodes=NODES,
        strategy="ddp" if RANKS > 1 else "auto", use_distributed_sampler=given.get("sampler") != "none",
    )  # fmt: skip
    hidden = torch.utils.data.SubsetRandomSampler(range(len(INPUTS)), generator=torch.Generator())
    own = {"own": Turning(Data(), RANKS, RANK), "hidden": hidden}.get(given.get("sampler"))
    loader = torch.utils.data.DataLoader(Data(), batch_size=8, shuffle=own is None, sampler=own)
    validation = torch.utils.data.DataLoader(Data(), batch_size=8) if given.get("evaluate") else None
    trainer.fit(Module(), job.loader(loader), validation, ckpt_path=job.checkpoint())


def by_accelerate():
    from accelerate import Accelerator

    from synergy_job.integrations.accelerate import state

    accelerator = Accelerator(cpu=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(DataOfEpoch(), batch_size=8, shuffle=True)
    prepared, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in state(accelerator, Path(FOLDER) / "out").iterate(loader, **EVERY):
        optimizer.zero_grad()
        accelerator.backward(prepared(**batch)["loss"])
        optimizer.step()


{"transformers": by_transformers, "lightning": by_lightning, "accelerate": by_accelerate}[FRAMEWORK]()
whole = b"".join(part.detach().numpy().tobytes() for part in model.parameters())
(Path(FOLDER) / "weights").write_text(hashlib.sha256(whole).hexdigest())
