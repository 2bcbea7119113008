"""What is run to be compared: the paper's settings, and the demo."""
