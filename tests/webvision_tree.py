"""WebVision 1.0 in small, as the publisher's archives unpack."""

from pathlib import Path

from made_images import write_images

NAMES = ["tench, Tinca tinca", "crane", "great white shark, white shark", "crane", "hen"]
SYNSETS = ["n01440764", "n01443537", "n01484850", "n01491361", "n01514859"]


def make_tree(
    root: Path,
    *,
    test: str = "val_images_256",
    num_classes: int = 5,
    queries: int = 2,
    photos: int = 2,
    validation: int = 10,
) -> Path:
    """Some queries and validation images for five of its classes; more may be listed."""
    train_files = [
        (f"google/q{queries * label + query:04d}/photo {number}_{label}.jpg", label)
        for label in range(5)
        for query in range(queries)
        for number in range(photos)
    ]
    test_files = [(f"val{number:06d}.jpg", number % 5) for number in range(1, validation + 1)]
    info = root / "info"
    info.mkdir(parents=True)
    lines = [f"{synset} {name}\n" for synset, name in zip(SYNSETS, NAMES, strict=True)]
    lines += [f"n{90_000_000 + number} thing {number}\n" for number in range(5, num_classes)]
    (info / "synsets.txt").write_text("".join(lines))
    for name, files in (
        ("train_filelist_google.txt", train_files),
        ("val_filelist.txt", test_files),
    ):
        (info / name).write_text("".join(f"{file} {label}\n" for file, label in files))
    write_images(root, [file for file, _ in train_files], size=(90, 64))
    write_images(root / test, [file for file, _ in test_files], size=(64, 100))
    return root


def add_imagenet(folder: Path, images: int = 10) -> list[str]:
    """ILSVRC validation images, a folder a synset; returns their synsets."""
    synsets = [SYNSETS[number * 3 % 5] for number in range(images)]
    names = [f"{synset}/val_{number:08d}.JPEG" for number, synset in enumerate(synsets)]
    write_images(folder, names, size=(300, 200))
    return synsets
