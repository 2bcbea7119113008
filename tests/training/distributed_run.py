"""A training that `torchrun` starts in several processes; `test_distributed.py` compares it.

python -m torch.distributed.run --nproc-per-node 2 distributed_run.py FOLDER NETWORK STOP_AFTER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

from labelproof.data import load_digits
from labelproof.training import Configuration, Job, StopRequest, choose_examples, choose_execution
from labelproof.training.distributed import launched, share_gradients, taking_part
from labelproof.training.pack import train_runs


def main(folder: str, network: str, stop_after: str) -> None:
    torch.set_num_threads(1)
    configuration = Configuration(
        "digits",
        noise="symmetric:0.3",
        loss="ce+sr(tau=0.5,p=0.1,lambda0=1,rho=1.1,normalize=false)",
        network=network,
        epochs=3,
        batch_size=96,  # leaves a last batch of 3 examples, which two processes share unequally
    )
    examples = choose_examples(configuration, load_digits())
    with taking_part(choose_execution("cpu")) as execution, StopRequest() as stop:
        events = train_runs(
            [Job(configuration, Path(folder))],
            execution,
            load=lambda _: examples,
            checkpoint_seconds=1e9,
            stop=stop,
            wrap=share_gradients if launched() else None,
        )
        for event in events:
            # Only one process is told: the others have to hear of it from this one.
            stopping = event.kind == "epoch" and event.value["epoch"] + 1 == int(stop_after)
            if stopping and execution.rank == execution.world_size - 1:
                os.kill(os.getpid(), signal.SIGTERM)
            if execution.rank == 0:
                print(event.kind, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
