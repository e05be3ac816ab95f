"""Runs the command line as ``python -m dafh``."""

from dafh.cli import main

main(prog_name="dafh")
