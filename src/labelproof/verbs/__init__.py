"""The verbs, one function each: fit, train, audit, tune, review, and the methods of a run.

They are the functions of the package; the commands parse arguments and call the same code.
"""
