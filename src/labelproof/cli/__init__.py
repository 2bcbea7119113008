"""The command line: the only place where strings become objects."""
