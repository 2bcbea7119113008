from pathlib import Path

import typer
from made_images import write_images
from typer.testing import CliRunner, Result

from labelproof.cli.data import show

app = typer.Typer()
app.command()(show)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--no-open"], env={"COLUMNS": "200"})


def test_noise_is_said_in_words_and_drawn(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    result = run("digits", "--noise", "symmetric:0.6", "--seed", "1", "--output", str(page))
    assert result.exit_code == 0, result.output
    assert "of the training labels are wrong" in result.output
    assert "Page: " in result.output
    text = page.read_text(encoding="utf-8")
    assert "labelproof data show digits --noise symmetric:0.6 --seed 1" in text
    assert "The noise matrix" in text


def test_without_noise_the_data_are_shown(tmp_path: Path) -> None:
    result = run("digits", "--output", str(tmp_path / "page.html"), "--samples", "10")
    assert result.exit_code == 0, result.output
    assert "1,347 training images with the labels they came with" in result.output


def test_a_folder_of_ones_own_is_shown_with_its_warnings(tmp_path: Path) -> None:
    write_images(tmp_path / "pets", [f"{name}/{n}.png" for name in ("<b>", "dog") for n in "1234"])
    (tmp_path / "pets" / "notes.txt").touch()
    page = tmp_path / "page.html"
    result = run(str(tmp_path / "pets"), "--noise", "pair:0.25:exact", "--output", str(page))
    assert result.exit_code == 0, result.output
    assert "warning: " in result.output
    assert "1 file left out" in result.output
    assert "25.0% of the training labels were changed: 2 of 8" in result.output
    assert "&lt;b&gt;" in page.read_text(encoding="utf-8")


def test_a_table_is_listed(tmp_path: Path) -> None:
    table = tmp_path / "fruit.csv"
    table.write_text(
        "id,weight,colour,kind,split\n1,150,red,apple,train\n2,,yellow,banana,train\n"
        "3,140,red,apple,train\n4,110,yellow,[b]nana,train\n5,9,red,apple,test\n"
        "6,110,yellow,[b]nana,train\n7,115,yellow,banana,train\n"
    )
    page = tmp_path / "page.html"
    result = run(str(table), "--label", "kind", "--noise", "symmetric:0.5", "--output", str(page))
    assert result.exit_code == 0, result.output
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


def test_mistakes_are_explained_and_nothing_is_written(tmp_path: Path) -> None:
    for words, said in {
        "digits --noise sym:0.4": "noise: expected",
        "digits --noise human:worse": "human",
        "nothing-of-the-kind": "unknown dataset",
        "./nowhere": "no such file or folder",
    }.items():
        result = run(*words.split(), "--output", str(tmp_path / "page.html"))
        assert isinstance(result.exception, (ValueError, OSError))
        assert said in str(result.exception)
    assert not list(tmp_path.iterdir())
