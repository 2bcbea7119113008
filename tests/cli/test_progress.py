import io

from rich.console import Console

from labelproof.verbs.progress import RunDisplay


def test_the_time_left_is_that_of_the_epochs_seen_here() -> None:
    now, stream = 0.0, io.StringIO()
    shown = RunDisplay(Console(file=stream, width=80), runs=1, epochs=10, clock=lambda: now)
    with shown:
        shown.start("a", "a", epochs=10, done=4)
        for second, accuracy in ((10.0, 50.0), (20.0, 60.0)):
            now = second
            shown.advance("a", {"test_accuracy": accuracy})
    assert stream.getvalue().splitlines() == [
        "resumes after epoch 4 of 10",
        "epoch  5 of 10  accuracy 50.00%  0:00:50 left",
        "epoch  6 of 10  accuracy 60.00%  0:00:40 left",
    ]


def test_where_no_one_watches_a_line_says_now_and_then_where_all_runs_stand() -> None:
    now, stream = 0.0, io.StringIO()
    shown = RunDisplay(Console(file=stream, width=80), runs=3, epochs=150, clock=lambda: now)
    with shown:
        shown.start("a", "mnist-ce", epochs=50)
        shown.start("b", "mnist-mae", epochs=50, done=20)
        for second in range(10, 131, 10):
            now = float(second)
            shown.advance("a", {"test_accuracy": 91.5})
        shown.finish("b", "given up")
        now = 200.0
        shown.advance("a", {"test_accuracy": 91.5})
    assert stream.getvalue().splitlines() == [
        # 124 epochs of the 150 are left after 6 that took a minute, then 118.
        "0 of 3 runs done, 0:20:40 left; under way: "
        "mnist-ce (epoch 6 of 50), mnist-mae (epoch 20 of 50)",
        "0 of 3 runs done, 0:19:40 left; under way: "
        "mnist-ce (epoch 12 of 50), mnist-mae (epoch 20 of 50)",
        "1 of 3  mnist-mae  given up",
        # What was given up is not waited for: 86 epochs at 200 seconds for 14.
        "1 of 3 runs done, 0:20:29 left; under way: mnist-ce (epoch 14 of 50)",
    ]


def test_a_terminal_sees_a_bar_for_each_run_and_one_for_all() -> None:
    stream = io.StringIO()
    shown = RunDisplay(Console(file=stream, width=200, force_terminal=True), runs=2, epochs=4)
    with shown:
        for name in ("first", "second"):
            shown.start(name, name, epochs=2)
            shown.advance(name, {"test_accuracy": 75.0})
        shown._progress.refresh()
        shown.finish("first")
    text = stream.getvalue()
    for part in ("all runs", "first", "second", "2/4", "1/2", "accuracy 75.00%"):
        assert part in text
