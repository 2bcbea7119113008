"""A folder of drawn pictures, some of them in the wrong class's folder, to try an audit on.

Circles, squares, stars and triangles of many colours, sizes and turns, on a textured ground. Which
pictures were put wrongly is written to a file beside the folder, where nothing that reads the
folder sees it:

    python examples/planted_errors.py shapes/
    labelproof audit shapes/
    python examples/planted_errors.py shapes/ --check shapes-audit/suspects.csv
"""

import argparse
import csv
import math
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

CLASSES = ("circle", "square", "star", "triangle")
SIDE = 64
FINE = 4  # drawn so many times larger and then shrunk, for smooth edges


def draw(shape: str, generator: np.random.Generator) -> Image.Image:
    """One picture: a light shape on a dark ground."""
    ground = generator.uniform(20, 100, size=3)
    colour = generator.uniform(130, 255, size=3)
    cells = int(generator.integers(3, 9))
    texture = ground + generator.normal(0, 14, size=(cells, cells, 3))
    picture = Image.fromarray(texture.clip(0, 255).astype(np.uint8))
    picture = picture.resize((SIDE * FINE, SIDE * FINE), Image.Resampling.BICUBIC)
    radius = SIDE * FINE * generator.uniform(0.25, 0.42)
    room = SIDE * FINE / 2 - radius
    centre = SIDE * FINE / 2 + generator.uniform(-room, room, size=2)
    pen, fill = ImageDraw.Draw(picture), tuple(int(value) for value in colour)
    if shape == "circle":
        pen.ellipse([*(centre - radius), *(centre + radius)], fill=fill)
    else:
        pen.polygon(corners(shape, centre, radius, generator.uniform(0, 2 * math.pi)), fill=fill)
    small = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS), dtype=np.float64)
    grain = generator.normal(0, generator.uniform(2, 8), size=(SIDE, SIDE, 1))
    return Image.fromarray((small + grain).clip(0, 255).astype(np.uint8))


def corners(
    shape: str, centre: np.ndarray, radius: float, turn: float
) -> list[tuple[float, float]]:
    """The corners of a shape, on a circle or, for a star, on two in turn."""
    count = {"square": 4, "star": 10, "triangle": 3}[shape]
    angles = turn + 2 * math.pi * np.arange(count) / count
    reach = np.where(np.arange(count) % 2 == 1, 0.45, 1.0) if shape == "star" else np.ones(count)
    points = centre + radius * reach[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return [(x, y) for x, y in points.tolist()]


def plant(folder: Path, *, images: int, wrong: float, seed: int) -> None:
    """Draw the folder, and write a file beside it that says which pictures are misplaced."""
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder}: is there already and not empty; choose another place")
    generator = np.random.default_rng(seed)
    true = generator.permutation(np.arange(images) % len(CLASSES))
    moved = generator.permutation(images)[: round(wrong * images)]
    given = true.copy()
    given[moved] = (true[moved] + generator.integers(1, len(CLASSES), len(moved))) % len(CLASSES)
    rows = []
    for number, (shape, label) in enumerate(zip(true.tolist(), given.tolist(), strict=True)):
        sample = f"{CLASSES[label]}/{number:04}.png"
        (folder / sample).parent.mkdir(parents=True, exist_ok=True)
        draw(CLASSES[shape], generator).save(folder / sample)
        if shape != label:
            rows.append((sample, CLASSES[label], CLASSES[shape]))
    print(f"{folder}: {images} pictures of {', '.join(CLASSES)}; {len(rows)} in a wrong folder")
    if not rows:
        return
    with planted(folder).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("sample", "given", "label"))
        table.writerows(sorted(rows))
    print(f"{planted(folder)}: which those are; look at it when you are done")


def planted(folder: Path) -> Path:
    """The file with the samples that are in the wrong folder, and where they belong."""
    return folder.with_name(f"{folder.name}-planted.csv")


def check(folder: Path, file: Path) -> None:
    """Compare a list of suspects, or the labels that a review came to, with what was planted."""
    truth = {row["sample"]: row["label"] for row in read(planted(folder))}
    # A suspect has a suggestion, a reviewed sample a label; where it is empty nobody could tell.
    found = {
        row["sample"]: row.get("suggested", row.get("label", ""))
        for row in read(file)
        if row.get("suggested", row.get("label", "")) != row["given"]
    }
    right = [sample for sample in found if sample in truth]
    mended = [sample for sample in right if found[sample] == truth[sample]]
    print(
        f"{file}: {len(found)} labels to change, {len(right)} of the {len(truth)} planted errors "
        f"({len(mended)} to the right class) and {len(found) - len(right)} besides"
    )


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def main(arguments: list[str]) -> None:
    """Draw a folder, or check what was found in it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the pictures go, or are")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--wrong", type=float, default=0.08, help="share in a wrong folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", type=Path, metavar="CSV", help="suspects.csv or reviewed.csv")
    asked = parser.parse_args(arguments)
    if asked.check is not None:
        check(asked.folder, asked.check)
    else:
        plant(asked.folder, images=asked.images, wrong=asked.wrong, seed=asked.seed)


if __name__ == "__main__":
    main(sys.argv[1:])
