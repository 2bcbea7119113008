"""Label noise: labels in, labels out, and what was done to them."""
