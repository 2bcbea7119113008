"""From data, a network and a loss to a record."""

from labelproof.training.algorithms import Algorithm, Batch, Objectives
from labelproof.training.configuration import Configuration
from labelproof.training.description import Description
from labelproof.training.examples import Examples, choose_examples
from labelproof.training.execution import Execution, choose_device, choose_execution
from labelproof.training.metrics import DivergedError
from labelproof.training.pack import DeviceMemoryError, Event, Job, train_runs
from labelproof.training.record import RunRecord, read_record
from labelproof.training.run import Run
from labelproof.training.stopping import StopRequest
from labelproof.training.workers import WorkerError, run_tasks

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
    "Run",
    "RunRecord",
    "StopRequest",
    "WorkerError",
    "choose_device",
    "choose_examples",
    "choose_execution",
    "read_record",
    "run_tasks",
    "train_runs",
]
