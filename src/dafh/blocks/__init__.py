"""Rows in pieces: in memory, in files, on a cluster.

A fit of many rows needs two things of them: a sample to choose by, and sums over all of them. `Blocks` is the one
interface for both: apply a function to every block of rows. It has three providers (`memory`, `files`, `cluster`), and
what is built on it is written once, for all of them. `sampling` draws rows by a hash of their values, so that neither
their order nor the way they are divided into files or partitions matters.

Another home for rows (a database, say) is one more class like `MemoryBlocks`. What is learned from rows belongs to
other rooms: `linear` for sums, `estimators` for what is fitted.
"""
