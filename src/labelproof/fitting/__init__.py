"""From a dataset of one's own to a trained network, with no setting that has to be known."""
