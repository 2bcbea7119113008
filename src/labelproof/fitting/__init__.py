"""From your own dataset to a trained network, without any setting."""
