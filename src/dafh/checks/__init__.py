"""Checks of what users pass in, each with one sentence that says what to change.

`parameters` has what settings may be; `rows` has tables, labels, weights and what else is known about rows. A check
that several rooms need goes here; one that a single room needs stays there.
"""
