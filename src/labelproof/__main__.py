"""`python -m labelproof` is the program `labelproof`."""

from labelproof.cli.main import run

if __name__ == "__main__":
    run()
