"""From data, a network and a loss to a record."""
