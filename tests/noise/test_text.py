import numpy as np
import pytest

from labelproof import noise


def test_text_round_trips() -> None:
    kinds = "none symmetric:0.4 symmetric:0.6:exact asymmetric:0.25 asymmetric-reference:0.4"
    for text in f"{kinds} pair:0 pair:0.123456789 instance:0.3 human:worse".split():
        assert str(noise.parse_noise(text)) == text
        assert noise.parse_noise(f" {text.upper()} ") == noise.parse_noise(text)


def test_bad_text_says_what_is_expected() -> None:
    rates = "symmetric symmetric:lots symmetric:0.4: symmetric:0.4:exactly human:worst"
    others = "symmetric:0.4:exact:exact instance:0.4:exact human human:worse:exact none:0.1 x:1"
    for text in ("", *rates.split(), *others.split()):
        with pytest.raises(ValueError, match=f"^noise: expected .*symmetric:RATE.*got '{text}'"):
            noise.parse_noise(text)
    for text in ("symmetric:1.5", "symmetric:nan"):
        with pytest.raises(ValueError, match="noise rate"):
            noise.parse_noise(text)


def test_the_matrix_is_the_kinds_own_and_one_without_says_so() -> None:
    np.testing.assert_array_equal(
        noise.parse_noise("symmetric:0.3:exact").matrix(10, dataset="digits"),
        noise.symmetric_matrix(10, 0.3),
    )
    np.testing.assert_array_equal(
        noise.parse_noise("asymmetric:0.3").matrix(10, dataset="mnist"),
        noise.asymmetric_matrix(10, 0.3, confusions=noise.CONFUSIONS["mnist"]),
    )
    np.testing.assert_array_equal(noise.parse_noise("none").matrix(4, dataset="any"), np.eye(4))
    assert noise.parse_noise("pair:0.3").matrix(3, dataset="any")[2, 0] == 0.3
    for text, dataset in (
        *(("asymmetric:0.3", "iris"), ("asymmetric-reference:0.3", "mnist")),
        *(("instance:0.3", "cifar10"), ("human:worse", "cifar10")),
    ):
        with pytest.raises(ValueError, match=f"(noise|dataset): .*{text.partition(':')[0]}"):
            noise.parse_noise(text).matrix(10, dataset=dataset)


def test_applying_text_is_calling_the_function_with_what_it_needs() -> None:
    labels = np.arange(600) % 3
    features = np.random.default_rng(0).normal(size=(600, 4))
    given = {"num_classes": 3, "dataset": "any", "seed": 4, "features": features}
    found = {
        text: noise.parse_noise(text).apply(labels, **given).noisy
        for text in ("none", "pair:0.2", "symmetric:0.3:exact", "instance:0.3")
    }
    matrix = noise.symmetric_matrix(3, 0.3)
    np.testing.assert_array_equal(found["none"], labels)
    np.testing.assert_array_equal(
        found["symmetric:0.3:exact"], noise.corrupt(labels, matrix, seed=4, exact=True).noisy
    )
    np.testing.assert_array_equal(
        found["instance:0.3"],
        noise.corrupt_by_instance(features, labels, 0.3, num_classes=3, seed=4).noisy,
    )
    assert set(zip(labels, found["pair:0.2"], strict=True)) == {
        (true, written) for true in range(3) for written in (true, (true + 1) % 3)
    }
    del given["features"]
    for text, said in (
        ("instance:0.3", "features: expected the samples .*got none"),
        ("human:worse", r"human: expected the file of human:worse.*cifar100 \(noisy\).*human="),
    ):
        with pytest.raises(ValueError, match=said):
            noise.parse_noise(text).apply(labels, **given)
