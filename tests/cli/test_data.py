import gzip
from pathlib import Path

import pytest
from file_server import FileServer, tiny_server  # noqa: F401
from made_images import write_images
from typer.testing import CliRunner, Result

from labelproof.cli.data import app
from labelproof.data import DownloadError

WIDE = {"COLUMNS": "250", "TERM": "dumb"}


def invoke(*arguments: str | Path, code: int = 0, **environment: str) -> Result:
    texts = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, texts, env={**WIDE, **environment})
    assert result.exit_code == code, result.output
    return result


@pytest.mark.usefixtures("server")
def test_list_says_where_each_is_or_how_to_get_it(tmp_path: Path) -> None:
    text = invoke("list", "--data-root", tmp_path).output
    for part in (
        f"Datasets in {tmp_path}",
        "digits",
        "always there",
        "labelproof data download cifar10",
        "170.1 MB",
        "60,000",
        "32x32 colour",
        "ask its publisher for WebVision 1.0",
    ):
        assert part in text, part
    invoke("download", "tiny", "--data-root", tmp_path)
    text = invoke("list", LABELPROOF_DATA=str(tmp_path)).output
    assert f"{tmp_path / 'tiny'} (IDX files)" in text


def test_download_names_files_and_does_nothing_twice(server: FileServer, tmp_path: Path) -> None:
    result = invoke("download", "tiny", "--data-root", tmp_path)
    assert result.output.count("tiny: t") == 4
    assert "tiny: train-images-idx3-ubyte.gz, 0.0 MB" in result.output
    assert f"tiny: as published, in {tmp_path / 'tiny'} (IDX files)" in result.output
    again = invoke("download", "tiny", "digits", "--data-root", tmp_path)
    assert again.output.splitlines() == [
        f"tiny: as published, in {tmp_path / 'tiny'} (IDX files)",
        "digits: as published, embedded",
    ]
    assert len(server.paths) == 4


def test_download_takes_a_mirror_and_known_names_only(server: FileServer, tmp_path: Path) -> None:
    result = invoke("download", "tiny", "tinny", "--data-root", tmp_path, code=1)
    assert isinstance(result.exception, ValueError)
    assert "unknown dataset 'tinny': expected one of" in str(result.exception)
    assert server.paths == []
    server.files = {path.replace("/pub/", "/copy/tiny/"): d for path, d in server.files.items()}
    failed = invoke("download", "tiny", "--data-root", tmp_path, code=1)
    assert isinstance(failed.exception, DownloadError)
    mirror = f"{server.address}/copy"
    for place, options, environment in (
        ("a", ["--mirror", mirror], {}),
        ("b", [], {"LABELPROOF_MIRROR": mirror}),
    ):
        invoke("download", "tiny", "--data-root", tmp_path / place, *options, **environment)


@pytest.mark.usefixtures("server")
def test_verify_passes_what_is_right_and_names_what_is_not(tmp_path: Path) -> None:
    assert invoke("verify", "--data-root", tmp_path).output == "digits: as published, embedded\n"
    invoke("download", "tiny", "--data-root", tmp_path)
    right = invoke("verify", "--data-root", tmp_path)
    assert right.output.count("as published") == 2
    path = tmp_path / "tiny" / "train-labels-idx1-ubyte.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[-1] = 0
    path.write_bytes(gzip.compress(content))
    wrong = invoke("verify", "tiny", "--data-root", tmp_path, code=1)
    assert "tiny: what was read is not the publisher's train-labels-idx1-ubyte" in wrong.output


def show(*arguments: str | Path, code: int = 0) -> Result:
    return invoke("show", *arguments, "--no-open", code=code)


def test_a_folder_of_ones_own_is_shown_with_its_noise_and_its_warnings(tmp_path: Path) -> None:
    write_images(tmp_path / "pets", [f"{name}/{n}.png" for name in ("<b>", "dog") for n in "1234"])
    (tmp_path / "pets" / "notes.txt").touch()
    page = tmp_path / "deep" / "page.html"
    noise = ("--noise", "pair:0.25:exact", "--seed", "1")
    result = show(str(tmp_path / "pets"), *noise, "--output", str(page))
    assert "Page: " in result.output
    assert "warning: " in result.output
    assert "1 file left out" in result.output
    assert "25.0% of the training labels were changed: 2 of 8" in result.output
    text = page.read_text(encoding="utf-8")
    assert "&lt;b&gt;" in text
    assert f"pets {' '.join(noise)}" in text


def test_pages_are_named_after_their_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("pets", "birds"):
        write_images(tmp_path / name, [f"{kind}/{n}.png" for kind in "ab" for n in "12345"])
        for bad in "12":
            (tmp_path / name / "a" / f"{bad}.png").write_bytes(b"")
        said = show(name).output
        assert "2 of 10 images cannot be read" in said
        assert "8 training images" in said
        assert "2 of 10 images" in str(show(name, "--strict", code=1).exception)
    show("pets", "--noise", "symmetric:0.4")
    assert sorted(path.name for path in tmp_path.glob("*.html")) == [
        "birds-dataset.html",
        "pets-dataset.html",
        "pets-symmetric-0.4-dataset.html",
    ]


def test_a_table_is_listed(tmp_path: Path) -> None:
    table = tmp_path / "fruit.csv"
    table.write_text(
        "id,weight,colour,kind,split\n1,150,red,apple,train\n2,,yellow,banana,train\n"
        "3,140,red,apple,train\n4,110,yellow,[b]nana,train\n5,9,red,apple,test\n"
        "6,110,yellow,[b]nana,train\n7,115,yellow,banana,train\n"
    )
    page = tmp_path / "page.html"
    result = show(str(table), "--label", "kind", "--noise", "symmetric:0.5", "--output", str(page))
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert lines[1:-1] == [
        "fruit: 6 rows to train on, 1 to test, 2 columns, 4 features, 3 classes",
        "column kind missing features",
        "weight number 1 2",
        "colour category 0 2",
        "left out: id (numbers the rows)",
        "class rows to train on",
        "[b]nana 2",
        "apple 2",
        "banana 2",
        "How many labels are wrong is not known.",
    ]
    assert "1 of 3 columns left out: id" in lines[0]
    assert "of the training labels were changed" in lines[-1]
    assert not page.exists()
