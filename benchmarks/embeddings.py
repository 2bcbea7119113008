"""The features that networks saw, brought to the plane for the t-SNE figures of the docs.

    python benchmarks/embeddings.py features-mnist.npz --data-root DIR \
        --output records/embeddings/mnist.npz

Takes what `benchmarks/features.py` carried home. A run takes about ten seconds; those that the
output has already are not done again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from labelproof.data.load import load_dataset
from labelproof.experiments.figures import (
    Embedding,
    read_embeddings,
    sample_test_images,
    to_plane,
    write_embeddings,
)
from labelproof.experiments.presets import paper_method
from labelproof.experiments.tables import open_records
from labelproof.training.configuration import Configuration

METHODS = ("CE", "FL", "GCE", "CE+SR", "FL+SR", "GCE+SR")


def main() -> None:
    """Embed the features of every run of the paper's figure, and write as it goes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--records", type=Path, default=Path("records"))
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    carried = np.load(arguments.features, allow_pickle=False)
    store = open_records(arguments.records)
    done = read_embeddings(arguments.output) if arguments.output.exists() else []
    known = {(each.method, each.noise) for each in done}
    for name in carried.files:
        if name.endswith(".json"):
            continue
        configuration = Configuration.from_values(json.loads(str(carried[f"{name}.json"])))
        method = paper_method(configuration)
        if method not in METHODS or (method, configuration.noise) in known:
            continue
        record = store.find(configuration)
        dataset = load_dataset(configuration.data, root=arguments.data_root)
        features = carried[name].astype(np.float32)
        chosen = sample_test_images(dataset, len(features))
        labels = dataset.test.labels[chosen]
        accuracy = float("nan") if record is None else record.final_accuracy
        done.append(Embedding(method, configuration.noise, accuracy, to_plane(features), labels))
        write_embeddings(arguments.output, done)
        print(f"{len(done)}  {method}  {configuration.noise}", flush=True)


if __name__ == "__main__":
    main()
