import io
from typing import Any

from rich.console import Console
from small_runs import small

from labelproof.training import Event, Job
from labelproof.verbs.progress import RunDisplay

FIRST, SECOND = Job(small(epochs=50)), Job(small(epochs=50, seed=2))


class Shown(RunDisplay):
    """A display that is told the time."""

    now = 0.0

    def __init__(self, **options: Any):
        self.stream = io.StringIO()
        console = Console(file=self.stream, width=200, force_terminal=options.pop("terminal", None))
        super().__init__(console, clock=lambda: self.now, **options)

    def epochs(self, job: Job, *seconds: float) -> None:
        for self.now in seconds:
            self.show(Event(job, "epoch", {"test_accuracy": 91.5}))


def test_the_time_left_is_that_of_the_epochs_seen_here() -> None:
    with Shown(runs=1, epochs=50) as shown:
        shown.show(Event(FIRST, "started", 44))
        shown.epochs(FIRST, 10.0, 20.0)
    assert shown.stream.getvalue().splitlines() == [
        "resumes after epoch 44 of 50",
        "epoch 45 of 50  accuracy 91.50%  0:00:50 left",
        "epoch 46 of 50  accuracy 91.50%  0:00:40 left",
    ]


def test_where_no_one_watches_a_line_says_now_and_then_where_all_runs_stand() -> None:
    with Shown(runs=3, epochs=150) as shown:
        shown.show(Event(FIRST, "started", 0), "mnist-ce")
        shown.show(Event(SECOND, "started", 20), "mnist-mae")
        shown.epochs(FIRST, *range(10, 131, 10))
        shown.show(Event(SECOND, "abandoned", 20))
        shown.epochs(FIRST, 200.0)
    assert shown.stream.getvalue().splitlines() == [
        # 124 epochs of the 150 are left after 6 that took a minute, then 118.
        "0 of 3 runs done, 0:20:40 left; under way: "
        "mnist-ce (epoch 6 of 50), mnist-mae (epoch 20 of 50)",
        "0 of 3 runs done, 0:19:40 left; under way: "
        "mnist-ce (epoch 12 of 50), mnist-mae (epoch 20 of 50)",
        "1 of 3  mnist-mae  abandoned after epoch 20",
        # An abandoned run is not waited for: 86 epochs at 200 seconds for 14.
        "1 of 3 runs done, 0:20:29 left; under way: mnist-ce (epoch 14 of 50)",
    ]


def test_a_terminal_sees_a_bar_for_each_run_and_one_for_all() -> None:
    with Shown(runs=2, epochs=100, terminal=True) as shown:
        for name, job in (("first", FIRST), ("second", SECOND)):
            shown.show(Event(job, "started", 0), name)
            shown.epochs(job, 1.0)
        shown._progress.refresh()
    text = shown.stream.getvalue()
    for part in ("all runs", "first", "second", "2/100", "1/50", "accuracy 91.50%"):
        assert part in text
