import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit.noisy_logits import make, softmax, symmetric
from made_images import write_images
from planted import Planted

import labelproof
from labelproof.audit import audit_given, audit_labels, audit_logits, fit_noise_model
from labelproof.audit.predictions import match_predictions, read_labels, read_probabilities
from labelproof.audit.samples import open_samples
from labelproof.data import load_dataset
from labelproof.data.dataset import Dataset, Split
from labelproof.data.notices import DataWarning

MADE = make(300, symmetric(3, 0.2), deviation=1)
TABLE = softmax(MADE.logits, 0.2)
NAMES = np.array(["ant", "bee", "cat"])
WORDS = NAMES[MADE.given]
FRAME = pd.DataFrame(TABLE, columns=NAMES)
GOOD = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])


def rows(labels: np.ndarray, names: tuple[str, ...] = ("ant", "bee", "cat")) -> Dataset:
    places = [f"line {n + 2}" for n in range(len(labels))]
    split = Split(np.zeros((len(labels), 2), np.float32), labels, places)
    return Dataset("made", {"train": split}, names, (0.0, 0.0), (1.0, 1.0), clean=False)


def test_labels_alone_are_audited_by_position_and_a_dataset_names_its_samples() -> None:
    audit = audit_given(TABLE, MADE.given, data="folder/labels.npy")
    assert (audit.name, audit.data, audit.kind) == ("labels", "folder/labels.npy", "unknown")
    assert audit.class_names == ("0", "1", "2")
    assert audit.samples == [str(number) for number in range(300)]
    assert audit.method == {"predictions": "given"}
    assert np.array_equal(audit.index, np.arange(300))
    assert audit.agreement.value == np.mean(TABLE.argmax(axis=1) == MADE.given)
    wrong = np.flatnonzero(MADE.given != MADE.true)
    assert np.isin(audit.findings.suspects, wrong).mean() > 0.95
    audit = audit_given(TABLE, rows(MADE.given), data="t.csv", options={"label": "kind"})
    assert (audit.name, audit.kind, audit.options) == ("made", "rows", {"label": "kind"})
    assert audit.class_names == ("ant", "bee", "cat")
    assert audit.samples[:2] == ["line 2", "line 3"]
    split = Split(np.zeros((300, 1, 2, 2), np.uint8), MADE.given)
    images = Dataset("made", {"train": split}, ("a", "b", "c"), (0.0,), (1.0,))
    assert audit_given(TABLE, images, data="x.npz").kind == "images"


def test_columns_are_matched_with_classes_by_position_or_by_name() -> None:
    turned, numbered = FRAME[["cat", "ant", "bee"]], pd.DataFrame(TABLE)
    written = pd.DataFrame({"label": "x", **{f"p({name})": FRAME[name] for name in NAMES[::-1]}})
    for probabilities, labels in (
        *((TABLE, WORDS), (TABLE.tolist(), MADE.given.astype(float).tolist())),
        *((numbered, WORDS), (numbered[[2, 0, 1]], MADE.given), (TABLE, pd.Series(WORDS))),
        *((FRAME, WORDS), (turned, WORDS), (turned, rows(MADE.given)), (written, WORDS)),
        (FRAME.assign(note="text", age=7), pd.Series(WORDS)),
    ):
        found = match_predictions(probabilities, labels)
        np.testing.assert_array_equal(found.probabilities, TABLE)
        assert np.array_equal(found.labels, MADE.given)
        assert found.class_names in (("ant", "bee", "cat"), ("0", "1", "2"))


def test_columns_of_text_labels_are_in_the_order_of_scikit_learn_and_names_may_be_numbers() -> None:
    numbers, table = np.arange(1, 13), 0.88 * np.eye(12) + 0.01
    found = match_predictions(table, numbers.astype(str))
    assert [*found.class_names] == sorted(map(str, range(1, 13)))
    for names in ([*range(1, 13)], numbers):
        found = match_predictions(table, numbers, class_names=names)
        assert np.array_equal(found.labels, np.arange(12))
        assert found.class_names == tuple(map(str, range(1, 13)))


def test_class_names_say_which_column_is_which() -> None:
    wide = np.column_stack([np.full(300, 0.05), TABLE * 0.95])
    names = ["ape", *NAMES]
    for probabilities in (wide, pd.DataFrame(wide, columns=names)):
        for labels in (WORDS, MADE.given + 1, rows(MADE.given)):
            found = match_predictions(probabilities, labels, class_names=names)
            assert found.class_names == ("ape", "ant", "bee", "cat")
            assert np.array_equal(found.labels, MADE.given + 1)
    for said, arguments in {
        "probabilities: expected 3 columns": (wide, WORDS),
        "probabilities: expected rows .* with a sum of 1": (
            pd.DataFrame(wide, columns=names),
            WORDS,
        ),
        "class_names: ": (wide, WORDS, ["ape", "ant", "ant", "cat"]),
        "labels: expected classes among .* got cat": (wide, WORDS, ["ape", "ant", "bee", "dog"]),
        "probabilities: .* none for cat, bee, ant; .* are dog": (
            *(pd.DataFrame({"dog": [1.0]}), ["ant"], ["cat", "bee", "ant"]),
        ),
        "probabilities: .* none for 0, 1, 2; .* are ant": (FRAME, MADE.given),
    }.items():
        table, labels, *given = arguments
        with pytest.raises(ValueError, match=f"^{said}"):
            match_predictions(table, labels, class_names=given[0] if given else None)


def write_table(folder: Path) -> Path:
    file = folder / "t.csv"
    lines = [f"0{n},text {n},{word}" for n, word in enumerate(WORDS)]
    file.write_text("\n".join(["key,text,label", *lines]) + "\n")
    return file


def test_rows_are_matched_by_the_id_that_is_named(tmp_path: Path) -> None:
    file = write_table(tmp_path)
    dataset = load_dataset(file, features=False)
    order = np.random.default_rng(0).permutation(300)
    mixed = FRAME.iloc[order]
    keys = mixed.assign(key=[f"0{n}" for n in order])
    keys.to_csv(tmp_path / "p.csv", index=False)
    for probabilities, labels, data, column in (
        (keys, dataset, file, "key"),
        (tmp_path / "p.csv", dataset, file, "key"),
        (mixed.assign(row=[f"line {n + 2}" for n in order]), dataset, file, "row"),
        (mixed.assign(row=[f"line {n + 1}" for n in order]), WORDS, "labels.txt", "row"),
        (mixed.assign(id=order), pd.Series(WORDS, index=order), "labels.npy", "id"),
    ):
        found = match_predictions(probabilities, labels, data=data, id=column)
        np.testing.assert_allclose(found.probabilities, TABLE)
    with pytest.warns(DataWarning, match="1 row about samples that are not in labels"):
        found = match_predictions(mixed.assign(id=order), WORDS[:299], id="id")
    np.testing.assert_array_equal(found.probabilities, TABLE[:299])


def test_a_table_of_images_is_shown_as_images_and_reviewed_by_their_paths(tmp_path: Path) -> None:
    files = [f"photos/{number}.png" for number in range(300)]
    write_images(tmp_path, files[1:], size=(8, 8))  # the first is missing
    table, key = tmp_path / "listed.csv", np.arange(300)[::-1]
    pd.DataFrame({"key": key, "file": files, "label": WORDS}).to_csv(table, index=False)
    shuffled = FRAME.assign(key=key).sample(frac=1, random_state=0)
    for probabilities, id in ((TABLE, None), (shuffled, "key")):
        audit = labelproof.audit(table, probabilities=probabilities, id=id)
        assert (audit.kind, audit.samples) == ("images", files)
        wrong = np.flatnonzero(MADE.given != MADE.true)
        assert np.isin(audit.findings.suspects, wrong).mean() > 0.95
    assert audit.suspects["id"].tolist() == [str(key[n]) for n in audit.findings.suspects]
    assert open_samples(audit).picture(1, side=8)[1] == "image/png"


def test_rows_are_matched_by_a_column_that_holds_the_names_of_the_samples(tmp_path: Path) -> None:
    file, order = write_table(tmp_path), np.random.default_rng(0).permutation(300)
    dataset, mixed = load_dataset(file, features=False), FRAME.iloc[order]
    named = mixed.assign(place="new.csv", row=[f"line {n + 2}" for n in order])
    named.to_csv(tmp_path / "p.csv", index=False)
    for probabilities in (named, tmp_path / "p.csv", named.set_index("row")):
        found = match_predictions(probabilities, dataset, data=file)
        np.testing.assert_allclose(found.probabilities, TABLE)
    # A column that lacks a name names nothing.
    lacking = FRAME.assign(row=["line 2", *(f"line {n + 1}" for n in range(1, 300))])
    found = match_predictions(lacking, dataset, data=file)
    np.testing.assert_allclose(found.probabilities, TABLE)


def test_image_paths_may_begin_at_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{word}/{n % 150}.png" for n, word in enumerate(sorted(WORDS))]
    write_images(tmp_path / "photos", names, size=(8, 8))
    monkeypatch.chdir(tmp_path)
    dataset = load_dataset("photos")
    table = FRAME.iloc[: len(dataset.train)]
    for path in ("photos", tmp_path / "photos"):
        given = table.assign(path=[f"{path}/{name}" for name in sorted({*names})])[::-1]
        for id in ("path", None):
            found = match_predictions(given, dataset, data="photos", id=id)
            np.testing.assert_allclose(found.probabilities, table)


def test_predictions_of_rows_that_are_left_out_are_dropped(tmp_path: Path) -> None:
    votes = pd.DataFrame({"text": [f"text {n}" for n in range(300)], "ann": WORDS, "bob": WORDS})
    votes.loc[[0, 7], ["ann", "bob"]] = ""
    votes.to_csv(tmp_path / "rows.csv", index=False)
    files = [f"{n}.png" for n in range(300)]
    write_images(tmp_path, files, size=(8, 8))
    images = votes.assign(text=files)
    images.to_csv(tmp_path / "images.csv", index=False)
    kept = np.setdiff1d(np.arange(300), [0, 7])
    for data in (tmp_path / "rows.csv", tmp_path / "images.csv", votes):
        for columns in ({"annotators": ("ann", "bob")}, {"label": "ann"}):
            with pytest.warns(DataWarning, match="2 of 300 rows without a label"):
                audit = labelproof.audit(data, probabilities=TABLE, **columns)
            np.testing.assert_array_equal(audit.findings.given, MADE.given[kept])
            assert audit.agreement.value > 0.75
    file, review = write_table(tmp_path), tmp_path / "review.csv"
    review.write_text("sample,label\nline 2,\nline 9,\n")
    by_id = FRAME.assign(key=[f"0{n}" for n in range(300)])
    with pytest.warns(DataWarning, match="2 rows about samples that are not in"):
        audit = labelproof.audit(file, probabilities=by_id, id="key", labels=review)
    for found in (audit, labelproof.audit(file, probabilities=TABLE, labels=review)):
        np.testing.assert_array_equal(found.findings.given, MADE.given[kept])
        assert found.agreement.value > 0.75


def test_ids_that_do_not_match_are_refused(tmp_path: Path) -> None:
    named = FRAME.assign(id=[str(n) for n in range(300)], other="x")
    for said, table, labels, column in (
        ("id: .* none for 299; .* are 0, 1", named[:299], WORDS, "id"),
        ("id: .* none for 1, 3; ", named.replace({"id": {"1": "01", "3": "3.0"}}), WORDS, "id"),
        ("id: .* got x again", named, WORDS, "other"),
        ("id: expected a column of the predictions .* got 'key'", named, WORDS, "key"),
        ("id: expected a table", TABLE, WORDS, "id"),
    ):
        with pytest.raises(ValueError, match=f"^{said}"):
            match_predictions(table, labels, id=column)
    file = write_table(tmp_path)
    file.write_text(file.read_text().replace("\n01,", "\n00,"))
    keys = FRAME.assign(key=[f"0{n}" for n in range(300)])
    with pytest.raises(ValueError, match=r"^id: .* once in .*t\.csv, got 00 again"):
        match_predictions(keys, load_dataset(file, features=False), data=file, id="key")


def test_an_index_other_than_that_of_the_labels_is_refused() -> None:
    frame = pd.DataFrame(TABLE)
    shuffled = pd.Series(MADE.given).sample(frac=1, random_state=0)
    for door in (audit_labels, audit_logits, fit_noise_model, audit_given):
        with pytest.raises(ValueError, match=r"^labels: expected the index of "):
            door(frame, shuffled)
        door(frame, shuffled.loc[frame.index])


def with_entry(value: float) -> np.ndarray:
    table = GOOD.copy()
    table[1, 2] = value
    return table


REFUSED: list[tuple[Any, str]] = [
    (0.5, r"shape \(samples, classes\).* of shape \(\)"),
    (np.ones((4, 1)), r"at least two classes, got float64 of shape \(4, 1\)"),
    (np.zeros((0, 3)), r"of shape \(0, 3\)"),
    (np.array([["a", "b"]]), "expected numbers .* got <U1"),
    (np.array([[0.5, 0.5]], dtype=object), "expected numbers .* got object"),
    (np.array([[3.0, 0.5]]), r"sum 3\.5 in row 0; apply a softmax to logits"),
    (GOOD * 100, "sum 100 in row 0; .* divide percentages"),
    (with_entry(0.75), r"sum 0\.95 in row 1"),
    (with_entry(np.nan), "smallest nan .* in row 1"),
    (with_entry(-0.2), r"smallest -0\.2 .* in row 1"),
    (with_entry(np.inf), "sum inf in row 1"),
    (with_entry(1e300), "sum inf in row 1"),
    (pd.DataFrame({"0": [0.5], "1": ["most"]}), "sum nan in row 0"),
    (pd.DataFrame({"0": [0.5], "1": [None]}), "sum nan in row 0"),
]


def test_what_cannot_be_probabilities_is_refused_and_decisions_are_told() -> None:
    for given, said in REFUSED:
        labels = [0, 1] if isinstance(given, pd.DataFrame) else [0, 1, 0]
        with pytest.raises(ValueError, match=f"^probabilities: .*{said}"):
            match_predictions(given, labels)
    with pytest.warns(DataWarning, match="^probabilities: every number is 0 or 1"):
        match_predictions(np.eye(3)[MADE.given], MADE.given)


def logits_with(value: float, columns: Any = 1) -> np.ndarray:
    table = MADE.logits.astype(np.float64)
    table[7, columns] = value
    return table


def test_what_cannot_be_logits_or_a_temperature_is_refused() -> None:
    for said, logits, given in (
        (r"logits: .* of shape \(300,\)", MADE.logits[:, 0], MADE.given),
        ("logits: .* got nan in row 7", logits_with(np.nan), MADE.given),
        ("logits: .* got inf in row 7", logits_with(np.inf), MADE.given),
        (r"logits: .* got 1e\+300 in row 7", logits_with(1e300), MADE.given),
        ("logits: .* got -inf in row 7", logits_with(-np.inf, slice(None)), MADE.given),
        ("labels: .* 300 rows of the logits, got 299", MADE.logits, MADE.given[:-1]),
        ("labels: .* 3 columns of the logits, got 3", MADE.logits, MADE.given + 1),
    ):
        for door in (audit_logits, fit_noise_model):
            with pytest.raises(ValueError, match=f"^{said}"):
                door(logits, given)
    for temperature in (0, -1.0, np.nan, np.inf, 1e-300):
        with pytest.raises(ValueError, match=r"^temperature: "):
            fit_noise_model(MADE.logits, MADE.given, temperature=temperature)


def test_labels_are_read_from_lines_and_arrays(tmp_path: Path) -> None:
    lines, array = tmp_path / "labels.txt", tmp_path / "labels.npy"
    for content, expected in {
        "\ufeffcat\r\nsnow leopard \r\ncafé\r\n\r\n": ["cat", "snow leopard", "café"],
        "0\n2\n1": [0, 2, 1],
        "0\ncat\n1": ["0", "cat", "1"],
    }.items():
        lines.write_bytes(content.encode())
        assert read_labels(lines).tolist() == expected
    for given in (
        np.array([2, 0], np.uint8),
        np.array([2.0, 0.0]),
        np.array(["cat ", "dog"], "S4"),
    ):
        np.save(array, given)
        assert read_labels(array).tolist() in ([2, 0], ["cat", "dog"])
    for content in (b"", b"cat\n\ndog\n", b"cat\n\xff\xfe\n"):
        lines.write_bytes(content)
        with pytest.raises(ValueError, match=r"labels\.txt: expected "):
            read_labels(lines)


def test_what_is_no_label_is_refused() -> None:
    for labels in (
        *(["cat", None, "a"], [0.0, np.nan, 1], ["cat", "nan", "a"], [b"cat", b"?", b"a"]),
        *([0.5, 1.0, 0], [np.inf, 1.0, 0], [1e300, 1.0, 0], 3, np.ones((3, 3))),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
    ):
        with pytest.raises(ValueError, match=r"^labels: expected one class index or name per"):
            match_predictions(GOOD, labels)


def test_archives_and_tables_name_their_columns(tmp_path: Path) -> None:
    turned = {"probabilities": TABLE[:, ::-1], "class_names": NAMES[::-1]}
    np.savez(tmp_path / "p.npz", **turned, features=np.eye(2))
    FRAME.iloc[:, ::-1].to_csv(tmp_path / "p.csv")
    FRAME.to_parquet(tmp_path / "p.parquet")
    np.save(tmp_path / "p.npy", TABLE)
    assert match_predictions(tmp_path / "p.npz", WORDS).class_names == ("cat", "bee", "ant")
    np.testing.assert_allclose(match_predictions(tmp_path / "p.csv", WORDS)[0], TABLE)
    np.testing.assert_array_equal(match_predictions(tmp_path / "p.parquet", WORDS)[0], TABLE)
    assert isinstance(match_predictions(tmp_path / "p.npy", WORDS)[0], np.memmap)
    np.savez(tmp_path / "p.npz", a=GOOD, b=GOOD)
    with pytest.raises(ValueError, match=r"p\.npz: expected an array probabilities, got a, b"):
        match_predictions(tmp_path / "p.npz", WORDS)
    for name in ("q.csv", "q.npz", "q.npy"):
        with pytest.raises(FileNotFoundError, match=name):
            match_predictions(tmp_path / name, WORDS)


def test_what_is_mapped_gives_the_same_findings_and_stays_as_it_is(tmp_path: Path) -> None:
    path, expected = tmp_path / "p.npy", audit_labels(TABLE, MADE.given).score
    np.save(path, TABLE)
    np.testing.assert_array_equal(audit_labels(path, MADE.given).score, expected)
    np.save(path, np.zeros_like(TABLE))
    # Of a mapping that only this process sees, pages must not be given back: they are nowhere else.
    private = np.lib.format.open_memmap(path, mode="c")
    private[:] = TABLE
    np.testing.assert_array_equal(audit_labels(private, MADE.given).score, expected)
    np.testing.assert_array_equal(private, TABLE)


def test_damaged_files_are_refused_and_nothing_in_them_is_run(tmp_path: Path) -> None:
    planted, file = tmp_path / "planted", tmp_path / "p.npy"
    pickle.loads(pickle.dumps(Planted(planted)))  # noqa: S301
    planted.unlink()
    np.save(file, GOOD)
    whole = file.read_bytes()
    np.save(file, np.array([[Planted(planted), 0.5]], dtype=object), allow_pickle=True)
    for content in (file.read_bytes(), pickle.dumps(Planted(planted)), whole[:-8], whole[:40], b""):
        for name, read in {"p.npy": read_probabilities, "y.npy": read_labels}.items():
            (tmp_path / name).write_bytes(content)
            with pytest.raises(ValueError, match=name):
                read(tmp_path / name)
        (tmp_path / "p.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"p\.npz"):
            match_predictions(tmp_path / "p.npz", WORDS)
    assert not planted.exists()
