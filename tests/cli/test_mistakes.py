"""Mistakes are one line that helps, and leave nothing behind."""

import shlex
from pathlib import Path

import pytest
from trained import labelproof

MISTAKES = {
    "train": "data: expected a dataset's name",
    "train --data digit": "did you mean 'digits'",
    "train --config nowhere.toml": "No such file or directory: 'nowhere.toml'",
    "train --data digits --noise symetric:0.4": "did you mean 'symmetric'",
    "train --data digits --noise human:worse": "human: expected the file of human:worse",
    "train --data digits --set optimizer=adam": "did you mean 'adamw'",
    "train --data digits --preset papr": "did you mean 'paper'",
    "train --data digits --preset paper": "the paper has settings for mnist",
    "evaluate RUN --split tests": "only train, test",
    "evaluate RUN --format jso": "did you mean 'json'",
    "fit digits --device cpu --minutes -3": "minutes: expected a number in (0, ∞), got -3.0",
    "data show digits --noise sym:0.4": "noise: expected",
    "data show digits --noise human:worse": "human",
    "bench symetric --dataset mnist": "did you mean 'symmetric'?",
    "bench symmetric --dataset mnst": "did you mean 'mnist'?",
    "bench all --dataset mnst": "dataset: expected one of mnist, cifar10",
    "bench all --dataset mnist --columns 0.5": "column: expected one of",
    "bench symmetric --dataset mnist --columns .4": "column: expected one of 0.0",
    "bench symmetric --dataset mnist --methods gcee": "did you mean 'gce'?",
    "bench symmetric --dataset mnist --seeds one": "seeds: expected different",
    "bench symmetric --dataset mnist --data-root .": "labelproof data download mnist",
    "table symetric --records .": "did you mean 'symmetric'?",
    "table symmetric --records .": "expected one of mnist, cifar10, cifar100",
    "table symmetric --records . --dataset cifar": "did you mean 'cifar10'?",
    "table sweep-p --records . --dataset mnist": "sweep-p: expected one of cifar10, got 'mnist'",
    "table sweep-p --records . --format tex": "format: expected one of markdown, latex",
    "table sweep-p --records . --output table.xls": "expected one of .md, .tex",
    "table sweep-p --records . --columns 2": "column: expected one of 0.01",
    "table sweep-p --records . --methods CE": "such as CE+SR",
    "table symmetric --records . --dataset mnist --methods gcee": "did you mean 'gce'?",
    "table summary --records . --dataset mnist": "summary: expected without --dataset",
    "table summary --records . --format latex": "--format one of markdown, html, csv",
    "table sweep-p --records nowhere": "there is no folder nowhere; labelproof's repository",
    "figure acuracy --output a.svg": "did you mean 'accuracy'?",
    "figure accuracy --output a.svg": "expected one of mnist, cifar10, cifar100",
    "figure sweep-tau --output a.svg --dataset mnist": "expected one of cifar10, got 'mnist'",
    "figure sweep-tau --output a.jpg": "expected one of .svg, .png, .pdf",
    "figure sweep-tau --output a.svg --records nowhere": "there is no folder nowhere",
    "figure sweep-tau --output a.svg --runs x": "figure: expected --runs or --embeddings with tsne",
    "figure tsne --output a.svg --runs nowhere": "no finished run is kept in nowhere",
}


def test_mistakes_help(digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words, said in MISTAKES.items():
        mistake = labelproof(*shlex.split(words.replace("RUN", str(digits_run)))).exception
        assert isinstance(mistake, (ValueError, OSError)), words
        assert said in str(mistake), words
    assert not list(tmp_path.iterdir())
