"""Training within a time that is given: no run is begun that would not come to its end."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from labelproof.training.runner import Event, Job
from labelproof.training.stop_request import StopRequest

__all__ = ["TimeLimit"]

_MARGIN = 1.1
"""Runs get slower when others are made ready beside them; a run cut off is worth nothing."""


class TimeLimit:
    """Gives out jobs for as long as there is time for them.

    How long a run takes is told by the epochs of those before it. As long as nothing is known of
    runs of its kind, they are begun in any case; so are all that an engine asks for before it has
    done anything.

    Args:
        stop: Knows when the time is over.

    Example:
        >>> from labelproof.training.configuration import Configuration
        >>> long, short = (Job(Configuration("mnist", epochs=epochs)) for epochs in (50, 5))
        >>> now = 0.0
        >>> limit = TimeLimit(StopRequest(100, clock=lambda: now))
        >>> given = limit.give([long, long, short])
        >>> next(given).configuration.epochs
        50
        >>> for now in (10, 13):
        ...     limit.see(Event(long, "epoch", {}))
        >>> [job.configuration.epochs for job in given]  # 150 more seconds would be too much
        [5]
    """

    def __init__(self, stop: StopRequest):
        self.stop = stop
        self._first: dict[Job, float] = {}
        self._epochs: dict[Job, int] = {}
        self._pace: dict[Hashable, float] = {}

    def give(self, jobs: Sequence[Job]) -> Iterator[Job]:
        """Jobs in their order, without those that there is no time for when they are asked for."""
        waiting = list(jobs)
        while True:
            # Asked again each time: a later one may be shorter, or of a kind not known yet.
            chosen = next((job for job in waiting if self._fits(job)), None)
            if chosen is None:
                return
            waiting.remove(chosen)
            yield chosen

    def see(self, event: Event) -> None:
        """Take note of what happens, to know how fast it goes."""
        if event.kind == "epoch":
            job, now = event.job, self.stop.clock()
            first = self._first.setdefault(job, now)
            epochs = self._epochs[job] = self._epochs.get(job, -1) + 1
            if epochs:
                # The mean: what a device tells late comes two epochs at a time at the end.
                self._pace[_kind(job)] = (now - first) / epochs

    def _fits(self, job: Job) -> bool:
        needed = job.configuration.epochs * self._pace.get(_kind(job), 0.0) * _MARGIN
        return self.stop.clock() + needed < self.stop.end


def _kind(job: Job) -> Hashable:
    """What makes runs take about the same time for an epoch."""
    configuration = job.configuration
    return (
        configuration.data,
        configuration.network,
        configuration.batch_size,
        configuration.algorithm,
        configuration.imbalance,
    )
