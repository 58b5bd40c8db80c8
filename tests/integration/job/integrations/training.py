"""The same small training by each framework that owns the loop: `training.py FRAMEWORK FOLDER [OPTION...]`.

Dropout and a shuffled order make the random numbers count. Each step's loss goes to the file `losses`, the weights at
the end to `weights`.
"""

import hashlib
import sys
import time
from pathlib import Path

import torch

FRAMEWORK, FOLDER, *OPTIONS = sys.argv[1:]
given = dict(option.split("=") for option in OPTIONS)
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
        return {"x": INPUTS[index] + noise, "labels": TARGETS[index]}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
        )

    def forward(self, x, labels=None):
        time.sleep(STEP_S)
        loss = torch.nn.functional.mse_loss(self.layers(x), labels)
        if self.training:
            with (Path(FOLDER) / "losses").open("a") as file:
                file.write(f"{loss.item()!r}\n")
        return {"loss": loss}


model = Model()


def by_transformers():
    from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

    from synergy_job.integrations.transformers import train

    stops = given.get("early") == "yes"
    args = TrainingArguments(
        output_dir=str(Path(FOLDER) / "out"), max_steps=STEPS, per_device_train_batch_size=8, use_cpu=True,
        save_strategy="steps" if stops or given.get("keep") else "no", save_steps=10, eval_steps=10,
        evaluation_strategy="steps" if stops or given.get("evaluate") else "no", report_to=[], logging_steps=5,
        disable_tqdm=True, load_best_model_at_end=stops, metric_for_best_model="loss", lr_scheduler_type="constant",
        save_total_limit=int(given["keep"]) if "keep" in given else None,
    )  # fmt: skip
    early = [EarlyStoppingCallback(early_stopping_patience=1, early_stopping_threshold=1e9)] if stops else []
    train(Trainer(model, args, train_dataset=Data(), eval_dataset=Data(), callbacks=early))


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

    job = JobCallback(Path(FOLDER) / "out")
    trainer = pl.Trainer(
        max_steps=STEPS, max_epochs=-1, accelerator="cpu", callbacks=[job], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=5,
        accumulate_grad_batches=int(given.get("accumulate", "1")),
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(Data(), batch_size=8, shuffle=True)
    validation = torch.utils.data.DataLoader(Data(), batch_size=8) if given.get("evaluate") else None
    trainer.fit(Module(), job.loader(loader), validation, ckpt_path=job.checkpoint())


def by_accelerate():
    from accelerate import Accelerator

    from synergy_job.integrations.accelerate import state

    accelerator = Accelerator(cpu=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Data(), batch_size=8, shuffle=True)
    prepared, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in state(accelerator, Path(FOLDER) / "out").iterate(loader):
        optimizer.zero_grad()
        accelerator.backward(prepared(**batch)["loss"])
        optimizer.step()


{"transformers": by_transformers, "lightning": by_lightning, "accelerate": by_accelerate}[FRAMEWORK]()
whole = b"".join(part.detach().numpy().tobytes() for part in model.parameters())
(Path(FOLDER) / "weights").write_text(hashlib.sha256(whole).hexdigest())
