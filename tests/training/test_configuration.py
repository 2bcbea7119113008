import dataclasses
import json
import math
import string
from typing import Any

import pytest
from made_records import committed

from labelproof.training.configuration import Configuration, format_schedule, learning_rate

OTHERS: dict[str, list[Any]] = {
    "data": ["mnist", "/photos/cats and dogs/", "C:\\photos", "Käse._-"],
    "noise": ["asymmetric:0.3", "human:worse", "pair:0.2:exact", f"symmetric:{0.1 + 0.2!r}"],
    "loss": ["10*nce+0.1*mae", "nl", "fl(gamma=0.5)+sr(tau=0.1)", f"gce(q={1 / 3!r})"],
    "algorithm": ["nlnl", "co-teaching(rate=estimate)", f"co-teaching(rate={2 / 3!r})"],
    "network": ["cnn4(width=4)", "resnet18", "mlp(hidden=16,depth=1)"],
    "epochs": [1, 10**6],
    "batch_size": [2, 10**6],
    "optimizer": ["adamw"],
    "learning_rate": [1e-9, 1e9, 1 / 3],
    "schedule": ["constant", "step:30:0.1", f"exponential:{1 / 3!r}"],
    "momentum": [0.01, 0.999],
    "nesterov": [True],
    "weight_decay": [0.0, 1 / 3],
    "clip_norm": [0.0, 1e6],
    "augmentation": ["crop:4", "crop:4,flip,rotation:20"],
    "precision": ["float32", "bf16", "fp16"],
    "average": [1 / 3],
    "imbalance": [f"long-tailed:{1 / 3!r}"],
    "seed": [0, 2**63 - 1],
    "validation": [1 / 3],
    "class_weight": ["balanced"],
    "l1": [1e-300],
    "l1_on": ["weights"],
    "l1_before_clipping": [True],
}


def test_another_value_of_any_attribute_is_another_name_and_plain_values_lead_back() -> None:
    assert list(OTHERS) == [field.name for field in dataclasses.fields(Configuration)]
    all_at_once = {name: values[-1] for name, values in OTHERS.items()} | {"nesterov": False}
    for base in ({"data": "digits"}, all_at_once):
        plain = Configuration.from_values(base)
        names = {plain.name}
        for name, values in OTHERS.items():
            for value in values:
                if base is all_at_once and (name == "nesterov" or value == base[name]):
                    continue
                other = Configuration.from_values(base | {name: value})
                assert other.differences(plain) == plain.differences(other) == [name]
                again = Configuration.from_values(json.loads(json.dumps(other.as_values())))
                assert again == other
                assert (again.name, hash(again)) == (other.name, hash(other))
                assert list(again.as_values()) == list(OTHERS)
                # A name is a folder on any system.
                assert set(other.name) <= set(string.ascii_lowercase + string.digits + "-.")
                assert not other.name.startswith((".", "-"))
                assert not other.name.endswith(".")
                assert other.name not in names
                names.add(other.name)
    # However long its parts are.
    long, longer = (Configuration("x" * 240, loss="+".join(["ce"] * each)) for each in (90, 91))
    assert len(long.name) < 200
    assert long.name.startswith("xxx")
    assert long.name != longer.name


def test_texts_and_numbers_are_brought_to_one_form() -> None:
    assert Configuration("photos/") == Configuration("photos")
    forms: list[tuple[str, Any, Any]] = [
        ("noise", "Symmetric:.40", "symmetric:0.4"),
        ("loss", " CE ", "ce"),
        ("loss", "0.1*mae + 10*nce", "0.1*mae+10*nce"),
        ("algorithm", "NLNL( )", "nlnl(negative=0.5,selective=0.25,samples=1)"),
        ("network", "cnn4( width = 4 )", "cnn4(width=4)"),
        ("schedule", "EXPONENTIAL:.97", "exponential:0.97"),
        ("imbalance", "STEP:.10", "step:0.1"),
        ("augmentation", "flip, crop:4", "crop:4,flip"),
        ("epochs", 3.0, 3),
        ("momentum", 1, 1.0),
    ]
    for name, written, canonical in forms:
        mine = Configuration("digits", **{name: written})
        assert mine == Configuration("digits", **{name: canonical})
        assert repr(getattr(mine, name)) == repr(canonical)


REFUSED: dict[str, list[Any]] = {
    "data": [""],
    "noise": ["symetric:0.4", "symmetric:2"],
    "loss": ["cee", "gce(r=0.7)"],
    "algorithm": ["co-teching", "co-teaching(rat=1)"],
    "network": ["cnn5", "cnn4(widht=4)"],
    "epochs": [0, 2.5],
    "batch_size": [1],
    "optimizer": ["adam"],
    "learning_rate": [0, float("nan")],
    "schedule": ["cosin"],
    "momentum": [1.1],
    "weight_decay": [-1],
    "clip_norm": [-1, float("inf")],
    "augmentation": ["flipp"],
    "precision": ["bf17"],
    "average": [1.5],
    "imbalance": ["stepp:0.1", "step:0"],
    "seed": [-1],
}


def test_values_that_cannot_be_meant_are_named() -> None:
    for name, values in REFUSED.items():
        for value in values:
            with pytest.raises(ValueError, match=name if name != "loss" else r"ce"):
                Configuration(**{"data": "digits", name: value})
    for together, named in (
        ({"momentum": 0, "nesterov": True}, "nesterov"),
        ({"optimizer": "adamw", "nesterov": True}, "nesterov"),
        ({"optimizer": "adamw", "momentum": 1}, "momentum"),
    ):
        with pytest.raises(ValueError, match=f"^{named}: expected"):
            Configuration("digits", **together)
    others: dict[Any, list[Any]] = {"str": [3, True], "bool": [1, "true"]}
    for field in dataclasses.fields(Configuration):
        for value in [None, [1], b"ce", *others.get(field.type, ["3", True])]:
            with pytest.raises(TypeError, match=f"^{field.name}: expected"):
                Configuration(**{"data": "digits", field.name: value})
    for values, said in (
        ({"data": "digits", "sead": 3}, "unknown setting 'sead'; did you mean 'seed'"),
        ({"data": "digits", "zzz": 3}, "unknown setting 'zzz'; known: data, noise, loss"),
        ({"seed": 3}, "data: expected a dataset's name or a path, got nothing"),
    ):
        with pytest.raises(ValueError, match=said):
            Configuration.from_values(values)


def test_schedules_are_the_formulas_and_brought_to_one_form() -> None:
    for text, formula in {
        "cosine": lambda t: 0.1 * (1 + math.cos(math.pi * t / 40)) / 2,
        "cosine:0.02": lambda t: 0.02 + 0.08 * (1 + math.cos(math.pi * t / 40)) / 2,
        "constant": lambda t: 0.1,
        "exponential:0.97": lambda t: 0.1 * 0.97**t,
        "step:15:0.1": lambda t: 0.1 * 0.1 ** (t // 15),
    }.items():
        rates = list(map(learning_rate(text, 0.1, epochs=40), range(40)))
        assert rates == pytest.approx(list(map(formula, range(40))), rel=1e-12)
    for text, canonical in {
        " Cosine ": "cosine",
        "cosine:-0.0": "cosine",
        "Cosine:1e-3": "cosine:0.001",
        "step:30.0:1": "step:30:1",
        "exponential:0.97654321": "exponential:0.97654321",
    }.items():
        assert format_schedule(text) == format_schedule(canonical) == canonical


def test_other_schedules_are_refused() -> None:
    forms = "^schedule: expected cosine, cosine:FLOOR, constant"
    texts = ["", ":", "linear", "cosine:", "cosine:a", "cosine:0.1:2", "constant:0.1"]
    texts += ["exponential", "step:3", "step:3:0.1:2", "step::0.1"]
    for text, named in {
        **dict.fromkeys(texts, forms),
        "cosin": "did you mean 'cosine'",
        "cosine:-0.1": "schedule floor",
        "exponential:0": "schedule factor",
        "step:inf:0.1": "schedule epochs",
    }.items():
        with pytest.raises(ValueError, match=named):
            format_schedule(text)
    # A floor above the rate, where both are known.
    with pytest.raises(ValueError, match="schedule: expected a floor of at most the learning rate"):
        Configuration("digits", learning_rate=0.01, schedule="cosine:.1")


def test_records_of_algorithms_keep_their_names() -> None:
    written = [each for each in committed() if each.configuration["algorithm"] != "supervised"]
    assert len(written) >= 8
    for record in written:
        assert Configuration.from_values(record.configuration).name == record.name
