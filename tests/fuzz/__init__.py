"""Hostile tables, states of the monitor, SQL exports and calls: ``make fuzz``.

Every case is plain values, drawn from a seed and its number, so that it can be drawn again, made smaller and kept: what
ever broke something is in ``corpus``, and `tests/test_fuzz.py` runs it with a few cases of each kind.

A kind of case lives in a module of its own, with `draw`, `run` and `smaller`; add it to `fuzz.kinds.KINDS`.
"""
