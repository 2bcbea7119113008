"""Datasets: from files to images or rows, labels and class names."""

from labelproof.data.annotators import JudgedVotes, judge_votes
from labelproof.data.arrays import load_arrays
from labelproof.data.cifar import UnsafePickleError
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, ImageSource, Split
from labelproof.data.download import DownloadError, download_dataset
from labelproof.data.huggingface import load_huggingface
from labelproof.data.image_folder import load_folder
from labelproof.data.image_table import load_image_table
from labelproof.data.load import load_dataset
from labelproof.data.notices import DataWarning
from labelproof.data.published import (
    DATASETS,
    KnownDataset,
    Verification,
    data_root,
    idx_bytes,
    load_coarse_labels,
    load_digits,
    load_webvision,
    read_idx,
    verify_dataset,
)
from labelproof.data.splits import Holdout, Imbalance, folds, hold_out, parse_imbalance
from labelproof.data.table import load_table, read_table

__all__ = [
    "DATASETS",
    "Columns",
    "DataWarning",
    "Dataset",
    "DownloadError",
    "Holdout",
    "ImageSource",
    "Imbalance",
    "JudgedVotes",
    "KnownDataset",
    "Split",
    "UnsafePickleError",
    "Verification",
    "data_root",
    "download_dataset",
    "folds",
    "hold_out",
    "idx_bytes",
    "judge_votes",
    "load_arrays",
    "load_coarse_labels",
    "load_dataset",
    "load_digits",
    "load_folder",
    "load_huggingface",
    "load_image_table",
    "load_table",
    "load_webvision",
    "parse_imbalance",
    "read_idx",
    "read_table",
    "verify_dataset",
]
