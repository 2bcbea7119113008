"""Networks, each with a way to get its penultimate features."""

from labelproof.models.cnn import FourLayerCNN, initialize

__all__ = ["FourLayerCNN", "initialize"]
