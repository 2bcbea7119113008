"""What networks see, small enough to carry home: features of test images from kept runs.

    labelproof bench all --dataset mnist --seeds 2 --keep-runs
    python benchmarks/features.py labelproof-runs --data-root DIR --seed 2 --output features.npz

`labelproof figure tsne` needs a run's weights, which stay on the machine that trained it. This
keeps, for each run, the features of the same thousand test images in half precision, from which the
figure of the docs is drawn anywhere.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from labelproof.data.load import load_dataset
from labelproof.experiments.figures import find_runs, sample_test_images, see_features
from labelproof.verbs.run import load_run


def main() -> None:
    """Look at the test images with every kept run of a seed, and write what each saw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    found = find_runs(arguments.runs)
    kept: dict[str, np.ndarray] = {}
    names: dict[str, str] = {}
    for path, configuration in found.items():
        if configuration.seed != arguments.seed:
            continue
        dataset = load_dataset(configuration.data, root=arguments.data_root)
        chosen = sample_test_images(dataset, arguments.images)
        run = load_run(path, arguments.device)
        kept[path.name] = see_features(run, dataset, chosen).astype(np.float16)
        names[path.name] = json.dumps(configuration.as_values())
        print(f"{path.name}: {kept[path.name].shape[1]} features of {len(chosen)} images")
    described = {f"{name}.json": np.array(text) for name, text in names.items()}
    np.savez_compressed(arguments.output, **kept, **described)  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    main()
