"""Research beside the package: the paper's study, rivals, simulations of the guarantee, benchmarks.

Not part of the wheel; run from the root of a clone, as README.md in this folder says.
"""
