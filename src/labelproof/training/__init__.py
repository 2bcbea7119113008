"""Train networks: configurations, runs, checkpoints and records."""

from labelproof.training.algorithms import Algorithm, Batch, Objectives
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, choose_examples
from labelproof.training.execution import Execution, StopRequest, choose_device, choose_execution
from labelproof.training.metrics import DivergedError
from labelproof.training.provenance import Description
from labelproof.training.record import RunRecord, read_record
from labelproof.training.runner import DeviceMemoryError, Event, Job, train_runs
from labelproof.training.trainer import Trainer

__all__ = [
    "Algorithm",
    "Batch",
    "Configuration",
    "Description",
    "DeviceMemoryError",
    "DivergedError",
    "Event",
    "Examples",
    "Execution",
    "Job",
    "Objectives",
    "RunRecord",
    "StopRequest",
    "Trainer",
    "choose_device",
    "choose_examples",
    "choose_execution",
    "read_record",
    "train_runs",
]
