"""Networks, each with a way to get its penultimate features."""

from labelproof.models.network import (
    MLP,
    EightLayerCNN,
    FourLayerCNN,
    Network,
    initialize,
    penultimate,
)
from labelproof.models.resnet import ResNet
from labelproof.models.text import NETWORKS, NetworkFamily, format_network, make_network

__all__ = [
    "MLP",
    "NETWORKS",
    "EightLayerCNN",
    "FourLayerCNN",
    "Network",
    "NetworkFamily",
    "ResNet",
    "format_network",
    "initialize",
    "make_network",
    "penultimate",
]
