"""Experiments: data, methods and the figures they give."""
