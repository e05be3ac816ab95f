"""Tests of the research, in reduced size; `make slow` runs the simulations in full."""
