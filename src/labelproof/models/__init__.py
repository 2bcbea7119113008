"""Networks, each with a way to get its penultimate features."""
