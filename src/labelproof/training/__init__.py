"""From data, a network and a loss to a record."""

from labelproof.training.record import RunRecord, read_record, save_run
from labelproof.training.supervised import Batches, EpochMetrics, Recipe, predict, train_epochs
from labelproof.training.workers import Event, WorkerError, run_tasks

__all__ = [
    "Batches",
    "EpochMetrics",
    "Event",
    "Recipe",
    "RunRecord",
    "WorkerError",
    "predict",
    "read_record",
    "run_tasks",
    "save_run",
    "train_epochs",
]
