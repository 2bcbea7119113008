"""The verbs: fit, train, audit, tune and what can be done with a run, each one function.

`labelproof.fit` and the others are these, and `labelproof VERB` parses arguments, calls one of them
and prints what it returns.
"""
