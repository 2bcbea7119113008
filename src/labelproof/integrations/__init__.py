"""Robust losses inside other people's trainers; each module needs the library it is named after.

`labelproof.integrations.lightning` and `labelproof.integrations.transformers` are imported by
their users alone, so that none of those libraries is loaded, or needed, by anything else here.
"""
