"""Lightning: schedules follow the trainer's epochs, from the start and from a checkpoint."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from labelproof import CrossEntropy, SparseRegularized, exponential, parse_loss

pytest.importorskip("lightning")

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from labelproof.integrations.lightning import RobustModule, ScheduleCallback

pytestmark = [
    # Lightning's advice on speed, which does not matter to eight rows.
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:The number of training batches"),
    # Lightning itself still looks at a class that torch has deprecated.
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
    # It misses the callback that wrote the checkpoint, which has nothing to do in the second run.
    pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`"),
    # It cannot know that which batch comes first does not matter to what is tested here.
    pytest.mark.filterwarnings("ignore:You're resuming from a checkpoint that ended before"),
    # Its own note that a folder of checkpoints is there already when a run goes on in it.
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
]

TEXT = "ce+sr(tau=0.5,p=0.1,lambda0=1,rho=2,r=1)"
BATCHES = 4


class Classifier(LightningModule):
    """Notes the weight at every step, and what the step's loss was of."""

    def __init__(self, loss: nn.Module | None = None):
        super().__init__()
        self.network = nn.Linear(3, 4)
        self.loss = loss
        self.seen: list[tuple[int, float]] = []
        self.steps: list[tuple[int, Tensor, Tensor, Tensor]] = []

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        inputs, labels = batch
        logits = self.network(inputs)
        value = (self.loss or self.robust_loss)(logits, labels)
        self.steps.append((self.current_epoch, logits.detach(), labels, value.detach()))
        regularized = [part for part in self.modules() if isinstance(part, SparseRegularized)]
        self.seen += [(self.current_epoch, part.weight) for part in regularized[:1]]
        return value

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Robust(RobustModule, Classifier):
    def __init__(self, robust_loss: Any = TEXT):
        super().__init__(robust_loss)


def batches() -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(8, 3, generator=generator)
    labels = torch.randint(0, 4, (8,), generator=generator)
    return DataLoader(TensorDataset(inputs, labels), batch_size=8 // BATCHES)


def make_trainer(folder: Path, **options: Any) -> Trainer:
    names = ("enable_checkpointing", "enable_model_summary", "enable_progress_bar", "logger")
    settings: Any = {"accelerator": "cpu", "default_root_dir": folder, "max_epochs": 3}
    return Trainer(**(settings | dict.fromkeys(names, False) | options))


def steps(*epochs: int) -> list[tuple[int, float]]:
    """What a run over these epochs sees: a weight of 2 ** epoch at each step."""
    return [(epoch, 2.0**epoch) for epoch in epochs for _ in range(BATCHES)]


def test_the_callback_moves_the_loss_with_the_epochs(tmp_path: Path):
    module = Classifier(parse_loss(TEXT))
    trainer = make_trainer(tmp_path, callbacks=[ScheduleCallback()])
    trainer.fit(module, batches())
    assert module.seen == steps(0, 1, 2)
    assert not trainer.callback_metrics, "logging is off unless asked for"
    by_hand = parse_loss(TEXT)
    for epoch, logits, labels, value in module.steps:
        by_hand.set_epoch(epoch)
        assert by_hand(logits, labels) == value


def test_every_loss_of_a_module_is_moved_and_one_without_is_told_so(tmp_path: Path):
    module = Classifier(parse_loss(TEXT))
    module.other = nn.Sequential(SparseRegularized(CrossEntropy(), weight=exponential(5, growth=3)))
    make_trainer(tmp_path, callbacks=[ScheduleCallback()], max_epochs=2).fit(module, batches())
    assert module.other[0].weight == 15
    trainer = make_trainer(tmp_path, callbacks=[ScheduleCallback()], max_epochs=1)
    with pytest.warns(UserWarning, match="no loss of labelproof is a submodule of Classifier"):
        trainer.fit(Classifier(nn.CrossEntropyLoss()), batches())


@pytest.mark.parametrize("every", [{"every_n_epochs": 1}, {"every_n_train_steps": BATCHES + 2}])
def test_a_checkpoint_goes_on_at_its_epoch(tmp_path: Path, every: dict[str, Any]):
    """From the end of the first epoch, and from the middle of the second."""
    saving = ModelCheckpoint(tmp_path / "kept", filename="{step}", save_top_k=-1, **every)
    first = Classifier(parse_loss(TEXT))
    callbacks: list[Callback] = [ScheduleCallback(), saving]
    trainer = make_trainer(tmp_path, callbacks=callbacks, enable_checkpointing=True, max_epochs=2)
    trainer.fit(first, batches())
    earliest = min((tmp_path / "kept").iterdir(), key=lambda path: int(path.stem.split("=")[1]))
    done = int(earliest.stem.split("=")[1])
    second = Classifier(parse_loss(TEXT))
    make_trainer(tmp_path, callbacks=[ScheduleCallback()]).fit(
        second, batches(), ckpt_path=earliest, weights_only=True
    )
    assert second.seen == steps(0, 1, 2)[done:]


def test_weight_and_temperature_are_logged_when_asked_for(tmp_path: Path):
    loss = SparseRegularized(
        CrossEntropy(), temperature=exponential(1, growth=0.5), weight=exponential(1, growth=2)
    )
    seen: list[dict[str, float]] = []

    class Reader(Callback):
        def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
            names = ("loss/lambda", "loss/tau")
            seen.append({name: float(trainer.callback_metrics[name]) for name in names})

    trainer = make_trainer(
        tmp_path, callbacks=[ScheduleCallback(log=True), Reader()], logger=CSVLogger(tmp_path)
    )
    trainer.fit(Classifier(loss), batches())
    assert seen == [{"loss/lambda": 2.0**epoch, "loss/tau": 0.5**epoch} for epoch in range(3)]
    (written,) = tmp_path.rglob("metrics.csv")
    assert "loss/lambda" in written.read_text().splitlines()[0]


def test_a_robust_module_needs_no_callback_and_resumes(tmp_path: Path):
    first, second = Robust(), Robust()
    trainer = make_trainer(tmp_path, max_epochs=2)
    trainer.fit(first, batches())
    assert first.seen == steps(0, 1)
    trainer.save_checkpoint(tmp_path / "kept.ckpt")
    make_trainer(tmp_path).fit(
        second, batches(), ckpt_path=tmp_path / "kept.ckpt", weights_only=True
    )
    assert second.seen == steps(2)
    # A trainer's callback that logs is not replaced by the module's, which does not.
    trainer = make_trainer(tmp_path, callbacks=[ScheduleCallback(log=True)], max_epochs=1)
    trainer.fit(Robust(), batches())
    schedules = [each for each in trainer.callbacks if isinstance(each, ScheduleCallback)]
    assert [callback.logged for callback in schedules] == [True]
    assert trainer.callback_metrics["robust_loss/lambda"] == 1


def test_a_checkpoint_of_another_loss_is_loaded(tmp_path: Path):
    path, trainer = tmp_path / "kept.ckpt", make_trainer(tmp_path)
    weighted = nn.CrossEntropyLoss(weight=torch.ones(4))
    for before, after in ((TEXT, "gce"), ("gce", TEXT), (TEXT, "nce+(mae+sr)"), (weighted, TEXT)):
        trained = Robust(before)
        trainer.strategy.connect(trained)
        trainer.save_checkpoint(path)
        options: dict[str, Any] = {"robust_loss": after, "weights_only": True}
        loaded = Robust.load_from_checkpoint(path, **options)
        assert torch.equal(loaded.network.weight, trained.network.weight)
        kept = torch.load(path, weights_only=True)
        del kept["state_dict"]["network.bias"]
        torch.save(kept, path)
        with pytest.raises(RuntimeError, match=r"Missing key.*network\.bias"):
            Robust.load_from_checkpoint(path, **options)
    # The same loss is loaded with its epoch.
    one, other = Robust(), Robust("gce+sr(lambda0=1,rho=3,r=1)")
    one.robust_loss.set_epoch(2)
    other.load_state_dict(one.state_dict())
    assert isinstance(other.robust_loss, SparseRegularized)
    assert (other.robust_loss.epoch, other.robust_loss.weight) == (2, 9)
