import dataclasses
import json
import math
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.training.configuration import Configuration, format_schedule, learning_rate

steady = settings(deadline=None, derandomize=True, max_examples=15)

unit = st.floats(0, 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "data": st.one_of(
        st.sampled_from(["digits", "mnist", "/photos/cats and dogs/", "C:\\photos"]),
        st.text(string.ascii_letters + "/._- ä", min_size=1, max_size=12).filter(str.strip),
    ),
    "noise": st.one_of(
        st.sampled_from(["none", "asymmetric:0.3", "human:worse", "pair:0.2:exact"]),
        st.floats(0.01, 0.89).map(lambda rate: f"symmetric:{rate!r}"),
    ),
    "loss": st.one_of(
        st.sampled_from(["ce", "10*nce+0.1*mae", "nl", "fl(gamma=0.5)+sr(tau=0.1)"]),
        st.floats(0.01, 0.99).map(lambda q: f"gce(q={q!r})"),
    ),
    "algorithm": st.one_of(
        st.sampled_from(["supervised", "nlnl", "co-teaching(rate=estimate)"]),
        unit.map(lambda rate: f"co-teaching(rate={rate!r})"),
    ),
    "network": st.sampled_from(["cnn4", "cnn4(width=4)", "resnet18", "mlp(hidden=16,depth=1)"]),
    "epochs": st.integers(1, 10**6),
    "batch_size": st.integers(2, 10**6),
    "optimizer": st.sampled_from(["sgd", "adamw"]),
    "learning_rate": st.floats(1e-9, 1e9),
    "schedule": st.one_of(
        st.sampled_from(["cosine", "constant", "step:30:0.1"]),
        st.floats(0.01, 1).map(lambda factor: f"exponential:{factor!r}"),
    ),
    "momentum": st.floats(0.01, 0.999),
    "nesterov": st.booleans(),
    "weight_decay": unit,
    "clip_norm": st.floats(0, 1e6),
    "augmentation": st.sampled_from(["none", "crop:4", "crop:4,flip,rotation:20"]),
    "precision": st.sampled_from(["auto", "float32", "bf16", "fp16"]),
    "average": unit,
    "imbalance": st.one_of(
        st.just("none"), st.floats(0.001, 1).map(lambda factor: f"long-tailed:{factor!r}")
    ),
    "seed": st.integers(0, 2**63 - 1),
    "validation": st.floats(0, 0.9),
    "class_weight": st.sampled_from(["none", "balanced"]),
    "l1": st.floats(0, 1e6),
    "l1_on": st.sampled_from(["all", "weights"]),
    "l1_before_clipping": st.booleans(),
}


def allowed(values: dict[str, Any]) -> bool:
    return not (values["optimizer"] == "adamw" and values["nesterov"])


every = st.fixed_dictionaries(VALUES).filter(allowed)


@steady
@given(every)
def test_plain_values_and_back_and_a_name_for_a_folder(values: dict[str, Any]) -> None:
    assert list(VALUES) == [field.name for field in dataclasses.fields(Configuration)]
    configuration = Configuration.from_values(values)
    again = Configuration.from_values(json.loads(json.dumps(configuration.as_values())))
    assert again == configuration
    assert again.as_values() == configuration.as_values()
    assert again.name == configuration.name
    assert hash(again) == hash(configuration)
    assert list(configuration.as_values()) == list(VALUES)
    # A name is a folder on any system.
    assert set(again.name) <= set(string.ascii_lowercase + string.digits + "-.")
    assert not again.name.startswith((".", "-"))
    assert not again.name.endswith(".")


@steady
@given(every, st.data())
def test_another_value_of_any_attribute_is_another_name(
    values: dict[str, Any], data: st.DataObject
) -> None:
    configuration = Configuration.from_values(values)
    for name, drawn in VALUES.items():
        changed_values = {**values, name: data.draw(drawn, name)}
        if not allowed(changed_values):
            continue
        other = Configuration.from_values(changed_values)
        changed = getattr(other, name) != getattr(configuration, name)
        assert configuration.differences(other) == other.differences(configuration)
        assert configuration.differences(other) == [name] * changed
        assert (other.name != configuration.name) == changed


def test_a_name_fits_into_a_folder_however_long_its_parts_are() -> None:
    long = Configuration("x" * 240, loss="+".join(["ce"] * 90))
    assert len(long.name) < 200
    assert long.name.startswith("xxx")
    assert long.name != Configuration("x" * 240, loss="+".join(["ce"] * 91)).name


def test_texts_and_numbers_are_brought_to_one_form() -> None:
    forms: list[tuple[str, Any, Any]] = [
        ("noise", "Symmetric:.40", "symmetric:0.4"),
        ("loss", " CE ", "ce"),
        ("loss", "0.1*mae + 10*nce", "0.1*mae+10*nce"),
        ("algorithm", "NLNL( )", "nlnl"),
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


def test_values_of_another_type_are_named() -> None:
    others: dict[Any, list[Any]] = {"str": [3, True], "bool": [1, "true"]}
    for field in dataclasses.fields(Configuration):
        for value in [None, [1], b"ce", *others.get(field.type, ["3", True])]:
            with pytest.raises(TypeError, match=f"^{field.name}: expected"):
                Configuration(**{"data": "digits", field.name: value})


def test_unknown_settings_are_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown setting 'sead'; did you mean 'seed'"):
        Configuration.from_values({"data": "digits", "sead": 3})
    with pytest.raises(ValueError, match="unknown setting 'zzz'; known: data, noise, loss"):
        Configuration.from_values({"data": "digits", "zzz": 3})
    with pytest.raises(ValueError, match="data: expected a dataset's name or a path, got nothing"):
        Configuration.from_values({"seed": 3})


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
        "EXPONENTIAL:.97": "exponential:0.97",
        "step:30.0:1": "step:30:1",
        "exponential:0.97654321": "exponential:0.97654321",
    }.items():
        assert format_schedule(text) == format_schedule(canonical) == canonical


def test_other_schedules_are_refused() -> None:
    for text in (
        *("", ":", "linear", "cosine:", "cosine:a", "cosine:0.1:2", "constant:0.1"),
        *("exponential", "step:3", "step:3:0.1:2", "step::0.1"),
    ):
        with pytest.raises(ValueError, match=r"^schedule: expected cosine, cosine:FLOOR, constant"):
            format_schedule(text)
    for text, named in {
        "cosin": "did you mean 'cosine'",
        "cosine:-0.1": "schedule floor",
        "exponential:0": "schedule factor",
        "step:inf:0.1": "schedule epochs",
    }.items():
        with pytest.raises(ValueError, match=named):
            format_schedule(text)


def test_a_floor_above_the_rate_is_refused_where_both_are_known() -> None:
    message = r"^schedule: expected a floor of at most the learning rate, 0\.01, got 'cosine:0\.1'$"
    with pytest.raises(ValueError, match=message):
        learning_rate("cosine:0.1", 0.01, epochs=3)
    with pytest.raises(ValueError, match=message):
        Configuration("digits", learning_rate=0.01, schedule="cosine:.1")
    level = Configuration("digits", learning_rate=0.1, schedule="cosine:.1")
    assert level.schedule == "cosine:0.1"
