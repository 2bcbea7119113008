"""Train one run, step by step."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from labelproof.losses import Loss, parse_loss
from labelproof.models.network import Network
from labelproof.seeds import derive_seed
from labelproof.training import batches, metrics
from labelproof.training.algorithms import make_algorithm
from labelproof.training.checkpoint import Checkpoint, refuse_misfit
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution, resolve_precision, share_gradients
from labelproof.training.kernels import default_convolution, make_fusible, use_convolution
from labelproof.training.optimizer import Optimizer
from labelproof.training.provenance import Description, describe
from labelproof.training.step import (
    Functions,
    GlobalRandomState,
    Recorder,
    make_direct,
    take_gradient,
    tuned,
)


def make_networks(
    configuration: Configuration, description: Description, execution: Execution, count: int
) -> list[nn.Module]:
    """Networks with different initial weights, with the layers that are fastest on the device."""
    device = execution.device
    convolution = execution.convolution or default_convolution(device, configuration.precision)
    networks = []
    for index in range(count):
        generator = batches.generator_for(configuration.seed, f"network {index}")
        network = description.make_network(generator).to(device)
        network = network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        for module in network.modules():
            # Counting batches is a kernel for each batch norm, and nothing reads the count.
            if isinstance(module, _BatchNorm) and module.momentum is not None:
                module.num_batches_tracked = None
        if execution.compile and device.type == "cuda":
            make_fusible(network)
        networks.append(use_convolution(network, convolution).train())
    return networks


class Trainer:
    """Trains a run, one step at a time.

    For every epoch, call `begin`, then `advance` until it returns true, then `end`. On CUDA these
    only queue work; `collect` waits for an epoch's sums and returns its metrics.

    Args:
        configuration: What to train; its precision is resolved for the device.
        examples: The examples.
        images: Their inputs on the device.
        execution: Device and options.
        loss: Replaces the configuration's loss, if it cannot be written as text.
    """

    def __init__(
        self,
        configuration: Configuration,
        examples: Examples,
        images: batches.DeviceInputs,
        execution: Execution,
        *,
        loss: Loss | None = None,
    ):
        if len(examples.used) < 2:
            raise ValueError(
                f"data: expected at least 2 training examples, got {len(examples.used)}"
            )
        if configuration.batch_size < execution.world_size:
            raise ValueError(
                f"batch_size: expected at least one example for each of {execution.world_size} "
                f"processes, got {configuration.batch_size}"
            )
        device = execution.device
        precision = resolve_precision(configuration.precision, device)
        self.configuration = replace(configuration, precision=precision)
        self.examples, self.images, self.execution = examples, images, execution
        self.epoch, self.step = 0, 0
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.generator = torch.Generator(device)
        if self.stream is not None:  # other runs may still be copying to the device
            self.stream.wait_stream(torch.cuda.current_stream(device))
        with self._on_stream():
            self._build(precision, loss or parse_loss(configuration.loss))

    def _build(self, precision: str, loss: Loss) -> None:
        configuration, execution, examples = self.configuration, self.execution, self.examples
        device, dataset = execution.device, examples.dataset
        self.description = describe(configuration, dataset)
        self.algorithm = make_algorithm(
            configuration.algorithm,
            loss,
            num_classes=dataset.num_classes,
            num_examples=len(dataset.train),
            noise_rate=examples.noise_rate if examples.clean is not None else None,
            epochs=configuration.epochs,
        )
        if device.type == "mps":  # which has no float64
            self.algorithm.float()
        self.algorithm.to(device)
        self.algorithm.use_generator(self.generator)
        self.networks = make_networks(
            configuration, self.description, execution, self.algorithm.num_networks
        )
        self.average = copy.deepcopy(self.networks[0]) if configuration.average else None
        self.evaluated = self.networks[0] if self.average is None else self.average
        """The network that is evaluated and saved: the average, if there is one."""
        # Of the names of its tensors.
        self._prefix = "network0." if self.average is None else "average."
        self.optimizers = [
            Optimizer(configuration, network, scaled=precision == "fp16")
            for network in self.networks
        ]
        if examples.weight is not None and not self.algorithm.takes_weights:
            raise ValueError(
                "weight: only the algorithm supervised takes weights of examples, got "
                f"{configuration.algorithm}"
            )
        parts = self.algorithm.part_names(device, weighted=examples.weight is not None)
        self.tally = metrics.Tally(parts, dataset.num_classes, device)

        self.feed = self.images.feed(examples, configuration)
        self.averaged = None
        if self.average is not None:
            average, latest = self.average.state_dict(), self.networks[0].state_dict()
            names = [name for name, tensor in average.items() if tensor.is_floating_point()]
            self.averaged = [average[name] for name in names], [latest[name] for name in names]
        shared = execution.world_size > 1
        wrapped = [share_gradients(each) for each in self.networks] if shared else self.networks
        # The last batch of an epoch may be smaller; it runs uncompiled.
        self.plain = self.fast = Functions(wrapped)
        if execution.compile:
            draws = self.algorithm.draws
            self.fast = self.plain.compiled(self.networks, draws=draws, shared=shared)
        self.direct = None
        if precision == "float32" and len(self.networks) == 1 and not shared:
            self.direct = make_direct(
                self.networks[0], self.algorithm, self.optimizers[0], self.feed, self.tally
            )
        # This package's own networks draw no random numbers.
        own = all(isinstance(network, Network) for network in self.networks)
        self.global_state = GlobalRandomState(device, used=not own)
        self.test_labels = None
        if "test" in dataset.splits:
            self.test_labels = torch.as_tensor(dataset.test.labels, device=device)
        self.held = torch.as_tensor(examples.held, device=device)
        self.held_labels = self.feed.given[self.held]
        self.recorder = None
        # Replayed steps would repeat the same dropout masks.
        modules = (module for network in self.networks for module in network.modules())
        has_dropout = any(isinstance(module, _DropoutNd) for module in modules)
        if execution.record and self.stream is not None and not has_dropout:
            generators = (self.generator,) if self.algorithm.draws else ()
            self.recorder = Recorder(self.stream, self.tensors, generators)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""
        return self.epoch >= self.configuration.epochs

    @property
    def steps(self) -> int:
        """Number of steps of the current epoch."""
        return len(self._plan.steps)

    def prepare(self) -> None:
        """Compile and record what every epoch needs; the state does not change."""
        if self.recorder is None:
            return
        plan = self._plan_epoch(0)
        with self._on_stream(), tuned():
            if self.images.resident:
                self.feed.load(plan)
            for share in dict.fromkeys(plan.steps):
                self.recorder.record(share, lambda share=share: self._step(share))
            if self.images.resident:
                self.recorder.record("evaluate", self._evaluate)

    def begin(self) -> None:
        """Start the epoch, or resume it from a checkpoint."""
        configuration = self.configuration
        self._plan = plan = self._plan_epoch(self.epoch)
        with self._on_stream():
            self.feed.load(plan, start=self.step)
            self.algorithm.set_epoch(self.epoch)
            if self.step == 0:
                self.tally.sums.zero_()
                self._seed(self.epoch)
            schedules = metrics.schedules_at(self.epoch, configuration, self.algorithm.loss)
            for optimizer in self.optimizers:
                optimizer.set_rate(schedules["learning_rate"])
        self._schedules = schedules

    def advance(self) -> bool:
        """Do one step; true when it was the epoch's last."""
        share = self._plan.steps[self.step]
        if self.execution.world_size > 1:
            # Each process has its own random numbers, of which a checkpoint has only the first's.
            number = self.epoch * self.steps + self.step
            self._seed(number, suffix=f" of process {self.execution.rank}")
        with self._on_stream(), self.global_state.installed():
            self.feed.stage()
            if self.recorder is not None:
                self.recorder.replay(share)
            else:
                self._step(share)
        self.step += 1
        if self.execution.device.type == "cpu" and self.execution.world_size == 1:
            # Free on the CPU; on CUDA it would make the host wait, so there `collect` checks.
            self._stop_if_diverged(int(self.tally.diverged))
        return self.step == len(self._plan.steps)

    def _seed(self, number: int, *, suffix: str = "") -> None:
        seed = self.configuration.seed
        self.generator.manual_seed(derive_seed(seed, f"loss{suffix}", number))
        self.global_state.seed(derive_seed(seed, f"network{suffix}", number))

    def end(self) -> metrics.EpochSums:
        """Evaluate the epoch and move to the next."""
        with self._on_stream():
            if self.recorder is not None and self.images.resident:
                self.recorder.replay("evaluate")
            else:
                self._evaluate()
            if self.execution.world_size > 1:
                self.tally.all_reduce()
            examples = sum(share.whole for share in self._plan.steps)
            epoch = metrics.EpochSums(self.tally, self.epoch, self._schedules, examples)
            self.algorithm.after_epoch(self.epoch)
            if self.execution.world_size > 1:
                # All use what the first process estimated from its share, such as a noise rate.
                for buffer in self.algorithm.buffers():
                    torch.distributed.broadcast(buffer, src=0)
        self.epoch, self.step = self.epoch + 1, 0
        return epoch

    def collect(self, epoch: metrics.EpochSums) -> dict[str, float]:
        """Wait for an epoch's sums and return its metrics; accuracies are in percent."""
        sums, _, _ = epoch.wait()
        self._stop_if_diverged(int(sums["diverged"]))
        return metrics.epoch_metrics(epoch, self.examples)

    def _stop_if_diverged(self, step: int) -> None:
        if step >= 0:
            how = (self.steps, self.configuration, self.algorithm.loss)
            raise metrics.DivergedError(metrics.explain_divergence(step, *how))

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that training changes, by name; not copies."""
        groups: dict[str, dict[str, Tensor]] = {
            **{f"network{i}": each.state_dict() for i, each in enumerate(self.networks)},
            "average": {} if self.average is None else self.average.state_dict(),
            **{f"optimizer{i}": each.state for i, each in enumerate(self.optimizers)},
            "feed": self.feed.state,
            "tally": self.tally.state,
            "algorithm": dict(self.algorithm.named_buffers()),
        }
        return {
            f"{group}.{name}": tensor.detach()
            for group, tensors in groups.items()
            for name, tensor in tensors.items()
        }

    def checkpoint(self) -> Checkpoint:
        """Everything needed to resume, copied from the device.

        In the middle of an epoch, all processes of a run must call it together.
        """
        self.synchronize()
        if self.step and self.execution.world_size > 1:
            torch.distributed.all_reduce(self.tally.sums)
            self._keep_sums_once()
        tensors = {name: tensor.to("cpu", copy=True) for name, tensor in self.tensors().items()}
        tensors |= self._random_states()
        prefix = self._prefix
        names = [name for name in tensors if name.startswith(prefix)]
        weights = {name.removeprefix(prefix): tensors.pop(name) for name in names}
        position = {"epoch": self.epoch, "step": self.step}
        return Checkpoint(
            weights, tensors, {"configuration": self.configuration.as_values(), **position}
        )

    def _random_states(self) -> dict[str, Tensor]:
        states = {f"random.{name}": value for name, value in self.global_state.state.items()}
        return {"random.loss": self.generator.get_state(), **states}

    def refuse_unsound(self) -> None:
        """Raise `DivergedError` if a weight is NaN or infinite."""
        if not all(bool(torch.isfinite(each.flat.values).all()) for each in self.optimizers):
            self._stop_if_diverged(max(int(self.tally.state["count"]) - 1, 0))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint in place.

        Raises:
            ValueError: The checkpoint does not fit the network, whose code has changed since, or
                the device, whose generator has another kind of state.
        """
        weights = {self._prefix + name: tensor for name, tensor in checkpoint.weights.items()}
        saved = checkpoint.state | weights
        tensors = self.tensors()
        # Checked first, so that a misfit leaves the run unchanged.
        refuse_misfit(saved, tensors | self._random_states(), self.configuration.network)
        with self._on_stream(), torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(saved[name])
            self.generator.set_state(saved["random.loss"])
        state = self.global_state.state
        self.global_state.state = {name: saved[f"random.{name}"] for name in state}
        self._keep_sums_once()
        self.epoch, self.step = checkpoint.values["epoch"], checkpoint.values["step"]
        self.synchronize()

    def _keep_sums_once(self) -> None:
        """Keep the sums of all processes in the first only, so that they are not counted again."""
        if self.execution.rank:
            self.tally.sums.zero_()

    def release(self) -> None:
        """Free the recorded graphs after training."""
        # A reference cycle: without this the graphs would hold GPU memory until the garbage
        # collector runs, while another run needs it.
        self.recorder = None

    def synchronize(self) -> None:
        """Wait for all queued work on the device."""
        if self.stream is not None:
            self.stream.synchronize()

    def _step(self, share: batches.Share) -> None:
        whole = share.whole == self.configuration.batch_size
        functions = self.fast if whole else self.plain
        if self.direct is not None and functions is self.plain:
            with torch.no_grad():
                self.optimizers[0].move(self.direct(self.feed.fetch(share.local)))
        else:
            self._step_traced(share, functions)
        if self.averaged is not None:
            with torch.no_grad():
                torch._foreach_lerp_(  # pyright: ignore[reportPrivateImportUsage]
                    *self.averaged, 1 - self.configuration.average
                )

    def _step_traced(self, share: batches.Share, functions: Functions) -> None:
        networks, predict, compute_loss, update = functions
        fetched, logits = predict(self.feed, networks, share.local, self.configuration.precision)
        scales = [each.scale for each in self.optimizers if each.scale is not None]
        total = compute_loss(self.algorithm, self.tally, logits, fetched, scales)
        parameters = [each for optimizer in self.optimizers for each in optimizer.parameters]
        if self.execution.world_size > 1:
            # Gradients are averaged over processes, whose shares may differ by one example.
            (total * (share.local * self.execution.world_size / share.whole)).backward()
            gradients = [take_gradient(parameter) for parameter in parameters]
        else:
            # Not .backward(): its accumulation nodes are bound to the stream that created them.
            gradients = list(torch.autograd.grad(total, parameters, materialize_grads=True))
        for optimizer in self.optimizers:
            count = len(optimizer.parameters)
            update(optimizer, gradients[:count])
            del gradients[:count]

    def _plan_epoch(self, epoch: int) -> batches.EpochPlan:
        return batches.plan_epoch(
            self.examples.used,
            epoch,
            self.configuration,
            rank=self.execution.rank,
            world_size=self.execution.world_size,
        )

    def _evaluate(self) -> None:
        count = partial(
            metrics.count_predictions,
            self.evaluated,
            num_classes=self.examples.dataset.num_classes,
            precision=self.configuration.precision,
            execution=self.execution,
        )
        crop = self.description.crop
        if self.test_labels is not None:
            counts = count(self.images.evaluated(crop=crop), self.test_labels)
            self.tally.correct.copy_(counts[0].sum())
        if len(self.held):
            held = self.images.evaluated(self.held, crop=crop)
            self.tally.held.copy_(count(held, self.held_labels))

    def _on_stream(self) -> Any:
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)
