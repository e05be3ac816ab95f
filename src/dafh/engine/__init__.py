"""Training of the group network and the classifiers: the only place that imports JAX.

- `objective`: what is maximised, as pure functions of what the networks put out;
- `networks`: parameters and their forward pass;
- `population`: many replicas trained on the same batches as one compiled program;
- `selection`: which replica, and which of its epochs, becomes the model;
- `compilation_cache`: compiled programs are kept on disk.

Pure functions: data in, a `TrainingRecord` out; progress and stopping are injected. A new term of the objective, or a
new surrogate of the 0-1 loss, belongs in `objective`.
"""
