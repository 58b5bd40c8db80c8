"""What `synergy_job.torch` saves, and how it goes through the data: small scripts run by Debian's PyTorch."""

from pathlib import Path

from support.job import debian_torch

SETUP = """
import itertools, random, sys
import numpy, torch
import synergy_job, synergy_job.torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __init__(self, count):
        self.count, self.read = count, []
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        self.read.append(int(index))
        return index, random.random(), torch.rand(1).item(), numpy.random.random()

def listed(batches):
    return [[value.tolist() for value in batch] for batch in batches]

def state(folder, model=None, **parts):
    return synergy_job.torch.state(folder + "/model.pt", model=model or torch.nn.Linear(2, 1), **parts)

folder = sys.argv[1] if len(sys.argv) > 1 else "."
"""


def run(code: str) -> str:
    return debian_torch.run(SETUP + code)


def test_an_epoch_that_is_resumed_has_the_same_batches_and_none_is_made_again() -> None:
    run("""
data = Numbers(40)
torch.manual_seed(7)
whole = state(".").loader(DataLoader(data, 4, shuffle=True))
epochs = [listed(whole.iter_from(epoch, 0)) for epoch in (0, 1)]
assert len(whole) == 10 and epochs[0] != epochs[1]
assert sorted(data.read[:40]) == list(range(40)) and data.read[:40] != list(range(40))
for workers in (0, 2):
    data.read.clear()
    torch.manual_seed(7)
    other = state(".").loader(DataLoader(data, 4, shuffle=True, num_workers=workers))
    assert listed(other.iter_from(1, 7)) == epochs[1][7:], workers
    assert len(data.read) == (12 if workers == 0 else 0), data.read
""")


def test_making_batches_takes_no_random_numbers_from_training() -> None:
    run("""
def draw():
    return random.random(), torch.rand(3).tolist(), numpy.random.random()

torch.manual_seed(1), random.seed(1), numpy.random.seed(1)
wanted = [draw() for _ in range(6)]
for workers in (0, 2):
    loader = state(".").loader(DataLoader(Numbers(8), 4, shuffle=True, num_workers=workers))
    torch.manual_seed(1), random.seed(1), numpy.random.seed(1)
    found = [draw() for epoch in (0, 1, 2) for _ in loader.iter_from(epoch, 0)]
    assert found == wanted, workers
""")


def test_all_kinds_of_loaders_are_resumed_alike() -> None:
    run("""
from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

class Together(Numbers):
    def __getitems__(self, indices):
        return [self[index] for index in indices]

class Doubling(DataLoader):
    def __iter__(self):
        return ([2 * value for value in batch] for batch in super().__iter__())

class Half(BatchSampler):
    def __init__(self, inner):
        self.batch_sampler = inner
    def __iter__(self):
        return itertools.islice(self.batch_sampler, 0, None, 2)
    def __len__(self):
        return (len(self.batch_sampler) + 1) // 2

class Wrapper:
    def __init__(self, inner):
        self.base_dataloader = inner
    def __getattr__(self, name):
        if name == "base_dataloader":
            raise AttributeError(name)
        return getattr(self.base_dataloader, name)
    @property
    def __class__(self):
        return self.base_dataloader.__class__
    def __reduce__(self):
        return Wrapper, *super().__reduce__()[1:]
    def __len__(self):
        return len(self.base_dataloader)
    def __iter__(self):
        return iter(self.base_dataloader)

class CountingEpochs(DataLoader):
    epoch = 0
    def set_epoch(self, epoch):
        vars(self)["epoch"] = epoch
    def __iter__(self):
        return ([value + self.epoch for value in batch] for batch in super().__iter__())

def kinds():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(5)
    yield DataLoader(Numbers(20), 4, shuffle=True, generator=generator)
    yield DataLoader(Numbers(20), 4, shuffle=True, num_workers=1, persistent_workers=True)
    yield DataLoader(Numbers(20), 4, sampler=WeightedRandomSampler([1.0] * 20, 12))
    yield DataLoader(Numbers(20), 4, sampler=SubsetRandomSampler(range(3, 17)))
    yield DataLoader(Numbers(20), batch_sampler=BatchSampler(RandomSampler(range(20)), 3, drop_last=False))
    yield DataLoader(Numbers(20), batch_size=None, shuffle=True)
    yield DataLoader(Together(20), 4, shuffle=True)
    yield Doubling(Numbers(20), 4, shuffle=True)
    hidden = RandomSampler(range(40), generator=torch.Generator())
    yield DataLoader(Numbers(40), batch_sampler=Half(BatchSampler(hidden, 4, drop_last=False)))
    yield Wrapper(DataLoader(Numbers(20), 4, shuffle=True))
    yield CountingEpochs(Numbers(20), 4)

def batches(loader, epoch, first):
    made = loader.iter_from(epoch, first)
    return [[torch.as_tensor(value).tolist() for value in batch] for batch in made]

for first, again in zip(kinds(), kinds()):
    torch.manual_seed(3)
    whole = state(".").loader(first)
    epochs = [batches(whole, epoch, 0) for epoch in (0, 1, 2)]
    assert len(epochs[2]) == len(whole) and epochs[0] != epochs[2]
    torch.manual_seed(3)
    resumed = state(".").loader(again)
    assert batches(resumed, 2, 2) == epochs[2][2:]
""")


def test_each_part_of_an_epoch_draws_random_numbers_of_its_own() -> None:
    run("""
from synergy_job.torch.order import Order

def batches(part):
    order = Order()
    order.part = part
    loader = synergy_job.torch.ResumableLoader(DataLoader(Numbers(20), 4, shuffle=True), order)
    return listed(loader.iter_from(0, 0))

indices, *numbers = zip(*(zip(*batches(part)) for part in (0, 1)))
assert indices[0] == indices[1]
assert all(one != other for one, other in numbers)
assert batches(1) == batches(1)
""")


def test_the_worker_init_fn_of_a_loader_prepares_the_users_data_set() -> None:
    run("""
class OfFile(Dataset):
    opened = None
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return self.opened + index

def open_it(worker):
    torch.utils.data.get_worker_info().dataset.opened = 100

for persistent in (False, True):
    loader = DataLoader(OfFile(), 4, num_workers=2, worker_init_fn=open_it, persistent_workers=persistent)
    batches = [batch.tolist() for batch in state(".").iterate(loader, steps=4)]
    assert batches == 2 * [[100, 101, 102, 103], [104, 105, 106, 107]], batches
""")


def test_loaders_without_an_index_are_left_as_they_are() -> None:
    run("""
class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(10))

class NoLength(torch.utils.data.Sampler):
    def __init__(self): pass
    def __iter__(self):
        return iter(range(5))

for loader in ([1, 2], DataLoader(Endless()), DataLoader(Numbers(5), sampler=NoLength())):
    assert state(".").loader(loader) is loader
assert [int(batch) for batch in state(".").iterate(DataLoader(Endless()), steps=12)] == [*range(10), 0, 1]
""")


def test_a_sampler_with_a_state_of_its_own_goes_on_from_where_its_epoch_began(tmp_path: Path) -> None:
    run(
        """
class Walk(torch.utils.data.Sampler):
    def __init__(self):
        self.at = 0
    def __len__(self):
        return 6
    def __iter__(self):
        for _ in range(6):
            self.at = (5 * self.at + 3) % 17
            yield self.at
    def state_dict(self):
        return {"at": self.at}
    def load_state_dict(self, state):
        self.at = state["at"]

def made():
    sampler = Walk()
    one = state(folder, sampler=sampler)
    return one, one.loader(DataLoader(Numbers(17), 2, sampler=sampler))

def indices(loader, epoch, first=0):
    return [batch[0].tolist() for batch in loader.iter_from(epoch, first)]

one, loader = made()
epochs = [indices(loader, epoch) for epoch in range(4)]
for done in range(1, 10):
    folder = sys.argv[1] + f"/{done}"
    one, loader = made()
    for epoch in range(1 + (done - 1) // 3):
        indices(loader, epoch)
    one.save(done)
    other, loader = made()
    assert other.load() == done
    assert indices(loader, done // 3, done % 3) == epochs[done // 3][done % 3:], done
    assert indices(loader, done // 3 + 1) == (epochs + [None])[done // 3 + 1] or done == 9, done
""".replace("sys.argv[1]", repr(str(tmp_path)))
    )


def test_everything_comes_back_bit_for_bit(tmp_path: Path) -> None:
    run(f"""
folder = {str(tmp_path)!r}

def made():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    average = torch.optim.swa_utils.AveragedModel(model)
    parts = dict(optimizer=optimizer, scheduler=scheduler, scaler=scaler, average=average)
    return model, optimizer, scheduler, average, state(folder, model, **parts)

def train(model, optimizer, scheduler, average, _, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(5, 4) * random.random() + numpy.random.random()).square().mean().backward()
        optimizer.step(), scheduler.step(), average.update_parameters(model)

one = made()
assert one[4].load() is None
train(*one, steps=5)
one[4].save(5)
train(*one, steps=5)
other = made()
assert other[4].load() == 5
train(*other, steps=5)
for mine, its in ((one[0], other[0]), (one[3], other[3])):
    assert all(torch.equal(a, b) for a, b in zip(mine.state_dict().values(), its.state_dict().values()))
assert one[2].state_dict() == other[2].state_dict()
""")


def test_wrong_parts_and_foreign_files_are_refused(tmp_path: Path) -> None:
    told = run(f"""
folder = {str(tmp_path)!r}

def refused(function):
    try:
        function()
    except (ValueError, synergy_job.CheckpointError) as error:
        print(type(error).__name__, error)
    else:
        raise AssertionError("not refused")

refused(lambda: state(folder, optimizer=torch.rand(2)))
refused(lambda: state(folder, sampler=[1, 2]))
refused(lambda: synergy_job.torch.state(folder, model=None))
state(folder).save(3)
refused(state(folder, average=torch.nn.Linear(2, 1)).load)
with synergy_job.atomic_file(folder + "/model.pt") as file:
    torch.save({{"step": 4, "weights": 1}}, file)
refused(state(folder).load)
""").splitlines()
    assert told[0].startswith("ValueError optimizer is Tensor, which has no state_dict() and load_state_dict()")
    assert told[1].startswith("ValueError sampler is list")
    assert told[2] == "ValueError model is None: pass the module that is trained"
    assert "holds model, but state() was given average, model: pass the same parts" in told[3]
    assert "was not written by synergy_job.torch.state" in told[4]


def test_a_rank_that_saved_nothing_takes_random_numbers_of_its_own(tmp_path: Path) -> None:
    told = run(f"""
folder = {str(tmp_path)!r}
import synergy_job.torch.training_state as module
state(folder).save(3)
numbers = []
for rank in (0, 1, 2, 1):
    module.rank = lambda: rank
    assert state(folder).load() == 3
    numbers.append(torch.rand(1).item())
assert len(set(numbers)) == 3 and numbers[1] == numbers[3], numbers
""")
    assert "rank 1 has saved no random numbers with step 3" in told
