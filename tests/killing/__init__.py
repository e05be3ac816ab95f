"""Commands that are killed within their writes, or find the disk full, and what becomes of their files.

`faults` makes the faults, `commands` lists everything that writes, and `trials` runs it and judges: ``make kill``.
"""
