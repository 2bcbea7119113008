"""Robust losses inside other libraries; each module needs the library it is named after.

Nothing else in this package imports `labelproof.integrations.lightning` or
`labelproof.integrations.transformers`, so that those libraries are optional.
"""
