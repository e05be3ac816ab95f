"""Training of the group classifier and the decoupled classifiers: the only place that imports JAX."""
