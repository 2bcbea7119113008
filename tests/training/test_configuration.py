from __future__ import annotations

import dataclasses
import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.training import Configuration

steady = settings(deadline=None, derandomize=True, max_examples=40)

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


def test_every_attribute_is_drawn_here() -> None:
    assert list(VALUES) == [field.name for field in dataclasses.fields(Configuration)]


@steady
@given(every)
def test_plain_values_and_back(values: dict[str, Any]) -> None:
    configuration = Configuration.from_values(values)
    again = Configuration.from_values(json.loads(json.dumps(configuration.as_values())))
    assert again == configuration
    assert again.as_values() == configuration.as_values()
    assert again.name == configuration.name
    assert hash(again) == hash(configuration)
    assert list(configuration.as_values()) == list(VALUES)


@steady
@given(every)
def test_numbers_are_kept_to_the_last_digit(values: dict[str, Any]) -> None:
    configuration = Configuration.from_values(values)
    for name in ("epochs", "batch_size", "learning_rate", "momentum", "average", "seed"):
        assert getattr(configuration, name) == values[name]


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


@steady
@given(every)
def test_a_name_is_a_folder_on_any_system(values: dict[str, Any]) -> None:
    name = Configuration.from_values(values).name
    assert set(name) <= set(string.ascii_lowercase + string.digits + "-.")
    assert not name.startswith((".", "-"))
    assert not name.endswith(".")


def test_a_name_fits_into_a_folder_however_long_its_parts_are() -> None:
    long = Configuration("x" * 240, loss="+".join(["ce"] * 90))
    assert len(long.name) < 200
    assert long.name.startswith("xxx")
    assert long.name != Configuration("x" * 240, loss="+".join(["ce"] * 91)).name


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ({"noise": "Symmetric:.40"}, {"noise": "symmetric:0.4"}),
        ({"loss": " CE "}, {"loss": "ce"}),
        ({"loss": "0.1*mae + 10*nce"}, {"loss": "0.1*mae+10*nce"}),
        ({"algorithm": "NLNL( )"}, {"algorithm": "nlnl"}),
        ({"network": "cnn4( width = 4 )"}, {"network": "cnn4(width=4)"}),
        ({"schedule": "EXPONENTIAL:.97"}, {"schedule": "exponential:0.97"}),
        ({"imbalance": "STEP:.10"}, {"imbalance": "step:0.1"}),
        ({"augmentation": "flip, crop:4"}, {"augmentation": "crop:4,flip"}),
        ({"epochs": 3.0, "momentum": 1}, {"epochs": 3, "momentum": 1.0}),
    ],
    ids=str,
)
def test_texts_and_numbers_are_brought_to_one_form(
    written: dict[str, Any], canonical: dict[str, Any]
) -> None:
    mine, other = Configuration("digits", **written), Configuration("digits", **canonical)
    assert mine == other
    for name, value in canonical.items():
        assert getattr(mine, name) == value
        assert type(getattr(mine, name)) is type(value)


def test_a_zero_is_a_zero() -> None:
    assert (
        Configuration("digits", weight_decay=-0.0).name
        == Configuration("digits", weight_decay=0).name
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"data": ""}, "data: expected"),
        ({"noise": "symetric:0.4"}, "noise: .*did you mean 'symmetric'"),
        ({"noise": "symmetric:2"}, "noise"),
        ({"loss": "cee"}, "did you mean 'ce'"),
        ({"loss": "gce(r=0.7)"}, "gce"),
        ({"algorithm": "co-teching"}, "algorithm: .*did you mean 'co-teaching'"),
        ({"algorithm": "co-teaching(rat=1)"}, "did you mean 'rate'"),
        ({"network": "cnn5"}, "network.*did you mean 'cnn"),
        ({"network": "cnn4(widht=4)"}, "width"),
        ({"epochs": 0}, "epochs: expected a whole number of at least 1, got 0"),
        ({"epochs": 2.5}, "epochs: expected a whole number of at least 1, got 2.5"),
        ({"batch_size": 1}, "batch_size: expected a whole number of at least 2, got 1"),
        ({"optimizer": "adam"}, "optimizer: .*got 'adam'; did you mean 'adamw'"),
        ({"learning_rate": 0}, r"learning_rate: expected a number in \(0, "),
        ({"learning_rate": float("nan")}, "learning_rate: expected a finite number"),
        ({"schedule": "cosin"}, "schedule: .*did you mean 'cosine'"),
        ({"momentum": 1.1}, r"momentum: expected a number in \[0, 1\], got 1.1"),
        ({"momentum": 0, "nesterov": True}, "nesterov: expected a momentum above 0"),
        ({"optimizer": "adamw", "nesterov": True}, "nesterov: expected it with sgd alone"),
        ({"optimizer": "adamw", "momentum": 1}, "momentum: expected a number below 1 for adamw"),
        ({"weight_decay": -1}, r"weight_decay: expected a number in \[0"),
        ({"clip_norm": -1}, r"clip_norm: expected a number in \[0"),
        ({"clip_norm": float("inf")}, "clip_norm: expected a finite number"),
        ({"augmentation": "flipp"}, "augmentation: .*did you mean 'flip'"),
        ({"precision": "bf17"}, "precision: .*did you mean 'bf16'"),
        ({"average": 1.5}, r"average: expected a number in \[0, 1\]"),
        ({"imbalance": "stepp:0.1"}, "imbalance: .*did you mean 'step'"),
        ({"imbalance": "step:0"}, "imbalance"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
    ],
    ids=str,
)
def test_values_that_cannot_be_meant_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Configuration(**{"data": "digits", **values})


@pytest.mark.parametrize("field", dataclasses.fields(Configuration), ids=lambda field: field.name)
def test_values_of_another_type_are_named(field: dataclasses.Field[Any]) -> None:
    wrong: list[Any] = [None, [1], b"ce"]
    if field.type == "str":
        wrong += [3, True]
    elif field.type == "bool":
        wrong += [1, "true"]
    else:
        wrong += ["3", True]
    for value in wrong:
        with pytest.raises(TypeError, match=f"^{field.name}: expected"):
            Configuration(**{"data": "digits", field.name: value})


def test_unknown_settings_are_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown setting 'sead'; did you mean 'seed'"):
        Configuration.from_values({"data": "digits", "sead": 3})
    with pytest.raises(ValueError, match="unknown setting 'zzz'; known: data, noise, loss"):
        Configuration.from_values({"data": "digits", "zzz": 3})
    with pytest.raises(ValueError, match="data: expected a dataset's name or a path, got nothing"):
        Configuration.from_values({"seed": 3})


def test_a_configuration_stays_as_it_is() -> None:
    configuration = Configuration("digits")
    with pytest.raises(dataclasses.FrozenInstanceError):
        configuration.seed = 3  # pyright: ignore[reportAttributeAccessIssue]
    configuration.as_values()["seed"] = 3
    assert configuration.seed == 1
