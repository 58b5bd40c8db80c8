"""A training script whose model lies on all ranks: `sharded_training.py KIND --checkpoint DIR [OPTION...]`.

KIND is `fsdp`, or `tensor` for tensor parallelism. Each step's loss is printed, and at the end and where the job leaves
a digest of the whole weights and moments, which are the same on any number of ranks.
"""

import argparse
import hashlib
import resource
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import synergy_job.torch

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["fsdp", "tensor"])
parser.add_argument("--checkpoint", required=True)
parser.add_argument("--step-ms", type=float, default=4)
parser.add_argument("--most-bytes", type=int, default=-1, help="after step 20, rank 1 can write no larger file")
given = parser.parse_args()

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
inputs = torch.randn(192, 12)
data = torch.utils.data.TensorDataset(inputs, inputs.sin().sum(dim=1, keepdim=True))
layers = nn.Sequential(nn.Linear(12, 30), nn.Tanh(), nn.Dropout(0.2), nn.Linear(30, 1))
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
if given.kind == "fsdp":
    model = FullyShardedDataParallel(layers, device_mesh=mesh, device_id=torch.device("cpu"), use_orig_params=True)
    sampler = torch.utils.data.DistributedSampler(data)
    torch.manual_seed(rank)  # each process drops out other neurons
else:
    model = parallelize_module(layers, mesh, {"0": ColwiseParallel(), "3": RowwiseParallel()})
    sampler = torch.utils.data.DistributedSampler(data, num_replicas=1, rank=0)
loader = torch.utils.data.DataLoader(data, 8, sampler=sampler, drop_last=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.7)
state = synergy_job.torch.state(given.checkpoint, model=model, optimizer=optimizer, scheduler=scheduler, sharded=True)


def digest() -> str:
    """Of the whole weights and moments; collective."""
    whole = StateDictOptions(full_state_dict=True)
    weights = get_model_state_dict(model, options=whole)
    moments = get_optimizer_state_dict(model, optimizer, options=whole).get("state", {})
    found = hashlib.sha256()
    for name in sorted(weights):
        found.update(weights[name].numpy().tobytes())
    for name in sorted(moments):
        found.update(b"".join(moments[name][key].numpy().tobytes() for key in ("exp_avg", "exp_avg_sq")))
    return found.hexdigest()[:16]


def load() -> "int | None":
    """What the job had when it was saved, as the ranks of now see it."""
    step = state.load()
    if step is not None:
        print(f"loaded step {step} whole {digest()}", flush=True)
    return step


def save(step: int) -> None:
    if given.most_bytes >= 0 and rank == 1 and step > 20:
        resource.setrlimit(resource.RLIMIT_FSIZE, (given.most_bytes, given.most_bytes))
    state.save(step)
    print(f"saved step {step} whole {digest()}", flush=True)


for batch, targets in state.iterate(loader, save=save, load=load, checkpoint_every_steps=20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(batch), targets)
    loss.backward()
    optimizer.step()
    scheduler.step()
    time.sleep(given.step_ms / 1000)
    print(f"step {scheduler.last_epoch} loss {loss.item():.9g}", flush=True)
print(f"done whole {digest()}", flush=True)
