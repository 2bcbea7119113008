"""One run, step by step: its networks, its position, and everything a checkpoint must hold."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.distributed
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from labelproof.losses import Loss, parse_loss
from labelproof.models.network import Network
from labelproof.models.text import make_network
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
    GlobalChance,
    Recorder,
    make_direct,
    take_gradient,
    tuned,
)


def make_networks(
    configuration: Configuration, description: Description, execution: Execution, count: int
) -> list[nn.Module]:
    """Networks that differ in their initial weights, in the form that is fastest on the device."""
    device = execution.device
    convolution = execution.convolution or default_convolution(device, configuration.precision)
    networks = []
    for index in range(count):
        network = make_network(
            configuration.network,
            num_classes=len(description.class_names),
            input_shape=description.input_shape,
            generator=batches.generator_for(configuration.seed, f"network {index}"),
        )
        network = network.to(device)
        network = network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        for module in network.modules():
            # Counting batches would be a kernel for each batch norm, and nothing reads the number.
            if isinstance(module, _BatchNorm) and module.momentum is not None:
                module.num_batches_tracked = None
        if execution.compile and device.type == "cuda":
            make_fusible(network)
        networks.append(use_convolution(network, convolution).train())
    return networks


class Trainer:
    """Trains a configuration, one step at a time.

    For every epoch, call `begin`, then `advance` until it returns true, then `end`. On CUDA these
    only queue work; `collect` waits for an epoch's sums and returns its metrics.

    Args:
        configuration: What to train; its precision is resolved for the device.
        examples: The examples.
        images: The same on the device.
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
        if self.stream is not None:  # copies of other runs to the device may not be done
            self.stream.wait_stream(torch.cuda.current_stream(device))
        with self._on_stream():
            self._build(precision, loss or parse_loss(configuration.loss))
        self._plan: batches.EpochPlan | None = None

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
        self.optimizers = [
            Optimizer(configuration, network, scaled=precision == "fp16")
            for network in self.networks
        ]
        if examples.weight is not None and not self.algorithm.takes_weights:
            raise ValueError(
                f"weight: examples that count differently are for the algorithm supervised, "
                f"got {configuration.algorithm}"
            )
        parts = self.algorithm.part_names(device, weighted=examples.weight is not None)
        self.tally = metrics.Tally(parts, dataset.num_classes, device)

        def bring(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device)

        self.feed = self.images.feed(examples, configuration)
        self.averaged = None
        if self.average is not None:
            mine, theirs = self.average.state_dict(), self.networks[0].state_dict()
            names = [name for name, tensor in mine.items() if tensor.is_floating_point()]
            self.averaged = [mine[name] for name in names], [theirs[name] for name in names]
        shared = execution.world_size > 1
        called = [share_gradients(each) for each in self.networks] if shared else self.networks
        # The last batch of an epoch has another size, for which nothing is compiled.
        self.plain = self.fast = Functions(called)
        if execution.compile:
            draws = self.algorithm.draws
            self.fast = self.plain.compiled(self.networks, draws=draws, shared=shared)
        self.direct = None
        if precision == "float32" and len(self.networks) == 1 and not shared:
            self.direct = make_direct(
                self.networks[0], self.algorithm, self.optimizers[0], self.feed, self.tally
            )
        # This package's own networks draw no random numbers.
        ours = all(isinstance(network, Network) for network in self.networks)
        self.chance = GlobalChance(device, used=not ours)
        self.test_labels = bring(dataset.test.labels) if "test" in dataset.splits else None
        self.held = bring(examples.held)
        self.held_labels = self.feed.given[self.held]
        self.recorder = None
        # All recorded steps would share the draws of dropout.
        modules = (module for network in self.networks for module in network.modules())
        drops = any(isinstance(module, _DropoutNd) for module in modules)
        if execution.record and self.stream is not None and not drops:
            drawn = (self.generator,) if self.algorithm.draws else ()
            self.recorder = Recorder(self.stream, self.tensors, drawn)

    @property
    def evaluated(self) -> nn.Module:
        """The network that is evaluated and kept: the average, if there is one."""
        return self.networks[0] if self.average is None else self.average

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""
        return self.epoch >= self.configuration.epochs

    @property
    def steps(self) -> int:
        """Steps of the current epoch."""
        return 0 if self._plan is None else len(self._plan.steps)

    def prepare(self) -> None:
        """Compile and record what every epoch needs; the state stays as it is."""
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
        assert self._plan is not None  # noqa: S101
        share = self._plan.steps[self.step]
        if self.execution.world_size > 1:
            # Each process draws numbers of its own, which no checkpoint of one of them has.
            number = self.epoch * self.steps + self.step
            self._seed(number, whose=f" of process {self.execution.rank}")
        with self._on_stream(), self.chance.lent():
            self.feed.stage()
            if self.recorder is not None:
                self.recorder.replay(share)
            else:
                self._step(share)
        self.step += 1
        if self.execution.device.type == "cpu" and self.execution.world_size == 1:
            # Here a look costs nothing; on CUDA it would make the host wait, so it is at the end.
            self._stop_if_diverged(int(self.tally.diverged))
        return self.step == len(self._plan.steps)

    def _seed(self, number: int, *, whose: str = "") -> None:
        seed = self.configuration.seed
        self.generator.manual_seed(derive_seed(seed, f"loss{whose}", number))
        self.chance.seed(derive_seed(seed, f"network{whose}", number))

    def end(self) -> metrics.Epoch:
        """Evaluate the epoch and move to the next."""
        assert self._plan is not None  # noqa: S101
        with self._on_stream():
            if self.recorder is not None and self.images.resident:
                self.recorder.replay("evaluate")
            else:
                self._evaluate()
            if self.execution.world_size > 1:
                self.tally.share()
            examples = sum(share.whole for share in self._plan.steps)
            epoch = metrics.Epoch(self.tally, self.epoch, self._schedules, examples)
            self.algorithm.after_epoch(self.epoch)
            if self.execution.world_size > 1:
                # What the first concluded from its share, such as a noise rate, holds for all.
                for buffer in self.algorithm.buffers():
                    torch.distributed.broadcast(buffer, src=0)
        self.epoch, self.step = self.epoch + 1, 0
        return epoch

    def collect(self, epoch: metrics.Epoch) -> dict[str, float]:
        """Wait for an epoch's sums and return its metrics; accuracies are in percent."""
        sums, _, _ = epoch.wait()
        self._stop_if_diverged(int(sums["diverged"]))
        return metrics.epoch_metrics(epoch, self.examples)

    def _stop_if_diverged(self, step: int) -> None:
        if step >= 0:
            how = (self.steps, self.configuration, self.algorithm.loss)
            raise metrics.DivergedError(metrics.explain_divergence(step, *how))

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that training changes, by name, as it lies in memory."""
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
        tensors |= self._drawn()
        kept = [name for name in tensors if name.startswith(self._kept)]
        weights = {name.removeprefix(self._kept): tensors.pop(name) for name in kept}
        place = {"epoch": self.epoch, "step": self.step}
        return Checkpoint(
            weights, tensors, {"configuration": self.configuration.as_values(), **place}
        )

    @property
    def _kept(self) -> str:
        """What the names of the weights that are kept begin with."""
        return "network0." if self.average is None else "average."

    def _drawn(self) -> dict[str, Tensor]:
        """Where the random numbers stand, by name."""
        chance = {f"random.{name}": value for name, value in self.chance.state.items()}
        return {"random.loss": self.generator.get_state(), **chance}

    def refuse_unsound(self) -> None:
        """Raise if a step since the last check made weights NaN or infinite."""
        if not all(bool(torch.isfinite(each.flat.values).all()) for each in self.optimizers):
            self._stop_if_diverged(max(int(self.tally.state["count"]) - 1, 0))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint in place.

        Raises:
            ValueError: The checkpoint does not fit the network, whose code has changed since, or
                the device, on which random numbers are others.
        """
        found = checkpoint.state | {
            f"{self._kept}{name}": tensor for name, tensor in checkpoint.weights.items()
        }
        mine = self.tensors()
        # Before anything is changed: what is refused here leaves the run as it was.
        refuse_misfit(found, mine | self._drawn(), self.configuration.network)
        with self._on_stream(), torch.no_grad():
            for name, tensor in mine.items():
                tensor.copy_(found[name])
            self.generator.set_state(found["random.loss"])
        self.chance.state = {name: found[f"random.{name}"] for name in self.chance.state}
        self._keep_sums_once()
        self.epoch, self.step = checkpoint.values["epoch"], checkpoint.values["step"]
        self.synchronize()

    def _keep_sums_once(self) -> None:
        """Leave what all processes summed up to one of them, or it would count for each."""
        if self.execution.rank:
            self.tally.sums.zero_()

    def release(self) -> None:
        """Free the recorded graphs after training."""
        # It knows the run, which knows it: its graphs and their memory would wait for the garbage
        # collector while another run looks for room.
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
        networks, predict, judge, update = functions
        fetched, logits = predict(self.feed, networks, share.local, self.configuration.precision)
        scales = [each.scale for each in self.optimizers if each.scale is not None]
        total = judge(self.algorithm, self.tally, logits, fetched, scales)
        wanted = [each for optimizer in self.optimizers for each in optimizer.parameters]
        if self.execution.world_size > 1:
            # Gradients are averaged over processes, whose shares may differ by one example.
            (total * (share.local * self.execution.world_size / share.whole)).backward()
            gradients = [take_gradient(parameter) for parameter in wanted]
        else:
            # Not .backward(): its accumulation nodes remember the stream they were made on.
            gradients = list(torch.autograd.grad(total, wanted, materialize_grads=True))
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
            rank=self.execution.rank,
            world_size=self.execution.world_size,
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
