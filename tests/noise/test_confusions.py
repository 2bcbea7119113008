import numpy as np
import pytest

from labelproof.noise import CONFUSIONS, REFERENCE_CONFUSIONS, SUPER_CLASSES, parse_noise


def test_super_classes_hold_every_class_once() -> None:
    assert [len(group) for group in SUPER_CLASSES] == [5] * 20
    assert sorted(label for group in SUPER_CLASSES for label in group) == list(range(100))


def test_classes_flip_to_the_next_of_their_super_class_and_round() -> None:
    # Beaver, dolphin, otter, seal, whale.
    chain = [4, 30, 55, 72, 95]
    assert [CONFUSIONS["cifar100"][label] for label in chain] == [30, 55, 72, 95, 4]
    group = {label: place for place, labels in enumerate(SUPER_CLASSES) for label in labels}
    assert all(group[true] == group[written] for true, written in CONFUSIONS["cifar100"].items())


def test_the_reference_groups_names_as_they_stand_in_the_alphabet() -> None:
    reference = REFERENCE_CONFUSIONS["cifar100"]
    assert [reference[label] for label in range(6)] == [1, 2, 3, 4, 0, 6]
    assert reference[99] == 95


def test_both_flip_every_class_of_cifar100_at_the_rate_and_are_not_the_same() -> None:
    matrices = [
        parse_noise(f"{kind}:0.3").matrix(100, dataset="cifar100")
        for kind in ("asymmetric", "asymmetric-reference")
    ]
    for matrix in matrices:
        np.testing.assert_allclose(matrix.diagonal(), 0.7)
        # Each class is also the one that another is taken for.
        np.testing.assert_allclose(matrix.sum(axis=0), 1)
    assert (matrices[0] != matrices[1]).any(axis=1).sum() > 90


def test_the_named_confusions_are_the_papers() -> None:
    assert CONFUSIONS["mnist"] == {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}
    animals = {2: "bird", 3: "cat", 4: "deer", 5: "dog", 6: "frog", 7: "horse"}
    names = {0: "airplane", 1: "automobile", **animals, 8: "ship", 9: "truck"}
    written = {names[true]: names[label] for true, label in CONFUSIONS["cifar10"].items()}
    assert written == {
        "truck": "automobile",
        "bird": "airplane",
        "deer": "horse",
        "cat": "dog",
        "dog": "cat",
    }


def test_the_code_flips_cifar10_class_after_class_so_that_cats_come_back() -> None:
    matrix = parse_noise("asymmetric-reference:0.4").matrix(10, dataset="cifar10")
    cat, dog = 3, 5
    assert matrix[cat, dog] == pytest.approx(0.4 * 0.6)
    assert matrix[dog, cat] == pytest.approx(0.4)
    assert 1 - np.trace(matrix) / 10 == pytest.approx(0.184)
    # The same by doing it, as the code does.
    labels = np.repeat(np.arange(10), 5000)
    true, generator = labels.copy(), np.random.default_rng(0)
    for source, target in ((9, 1), (2, 0), (3, 5), (5, 3), (4, 7)):
        places = np.flatnonzero(labels == source)
        labels[generator.choice(places, int(0.4 * len(places)), replace=False)] = target
    counted = np.zeros((10, 10))
    np.add.at(counted, (true, labels), 1 / 5000)
    np.testing.assert_allclose(counted, matrix, atol=0.02)
