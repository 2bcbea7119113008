"""Datasets: from files to images or rows, labels and class names."""

from labelproof.data.arrays import load_arrays
from labelproof.data.catalogue import DATASETS, KnownDataset
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, ImageSource, Split
from labelproof.data.digits import load_digits
from labelproof.data.download import download_dataset
from labelproof.data.folder import load_folder
from labelproof.data.holdout import Holdout, folds, hold_out
from labelproof.data.huggingface import load_huggingface
from labelproof.data.idx import idx_bytes, read_idx
from labelproof.data.imbalance import (
    Imbalance,
    keep_counts,
    keep_long_tailed,
    keep_step,
    long_tailed_counts,
    parse_imbalance,
    step_counts,
)
from labelproof.data.loading import load_coarse_labels, load_dataset
from labelproof.data.manifest import load_manifest
from labelproof.data.notices import DataWarning
from labelproof.data.pickles import UnsafePickleError
from labelproof.data.root import data_root
from labelproof.data.rows import load_rows, read_features
from labelproof.data.transfer import DownloadError, Transfer
from labelproof.data.verification import Verification, verify_dataset
from labelproof.data.webvision import load_webvision

__all__ = [
    "DATASETS",
    "Columns",
    "DataWarning",
    "Dataset",
    "DownloadError",
    "Holdout",
    "ImageSource",
    "Imbalance",
    "KnownDataset",
    "Split",
    "Transfer",
    "UnsafePickleError",
    "Verification",
    "data_root",
    "download_dataset",
    "folds",
    "hold_out",
    "idx_bytes",
    "keep_counts",
    "keep_long_tailed",
    "keep_step",
    "load_arrays",
    "load_coarse_labels",
    "load_dataset",
    "load_digits",
    "load_folder",
    "load_huggingface",
    "load_manifest",
    "load_rows",
    "load_webvision",
    "long_tailed_counts",
    "parse_imbalance",
    "read_features",
    "read_idx",
    "step_counts",
    "verify_dataset",
]
