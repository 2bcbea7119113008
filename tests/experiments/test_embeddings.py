from pathlib import Path

import numpy as np
import pytest
from trained import refusal, succeed

from labelproof.experiments.embeddings import (
    Embedding,
    read_embeddings,
    select_embeddings,
    write_embeddings,
)


def test_embeddings_are_kept_and_drawn_without_weights(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 10, 30)
    made = [
        Embedding(method, noise, 90.0 + index, generator.normal(size=(30, 2)) * 40, labels)
        for index, (method, noise) in enumerate(
            [
                *(("CE+SR", "symmetric:0.2"), ("CE", "symmetric:0.8"), ("CE", "symmetric:0.2")),
                *(("CE", "none"), ("CE", "asymmetric:0.4")),
            ]
        )
    ]
    file = tmp_path / "mnist.npz"
    write_embeddings(file, made)
    found = read_embeddings(file)
    assert [(each.method, each.noise, each.accuracy) for each in found] == [
        (each.method, each.noise, each.accuracy) for each in made
    ]
    for before, after in zip(made, found, strict=True):
        assert np.array_equal(after.labels, labels)
        centred = before.points - before.points.mean(axis=0)
        assert np.allclose(after.points, centred / np.abs(centred).max(), atol=2e-3)
    chosen = select_embeddings(found, "symmetric")
    assert [(each.method, each.noise) for each in chosen] == [
        *(("CE", "none"), ("CE", "symmetric:0.2"), ("CE", "symmetric:0.8")),
        ("CE+SR", "symmetric:0.2"),
    ]
    draw = ("figure", "tsne", "--embeddings", file, "--output", tmp_path / "views.png")
    succeed(*draw, "--noise", "symmetric")
    assert (tmp_path / "views.png").stat().st_size > 10_000
    assert "nothing of the noise pair" in refusal(*draw, "--noise", "pair")


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", points=np.zeros(3))
    with pytest.raises(ValueError, match="not a file of embeddings"):
        read_embeddings(tmp_path / "other.npz")
