"""Faster ways to compute what torch computes too, each for the device it was measured on."""
