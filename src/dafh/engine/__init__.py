"""Training of the group network and the classifiers: the only place that imports JAX.

- `objective`: the value that training maximises, as pure functions of the networks' outputs;
- `networks`: the parameters and the forward pass;
- `population`: trains many replicas on the same batches, as one compiled program;
- `selection`: picks the replica and the epoch that become the model;
- `compilation_cache`: keeps compiled programs on disk.

These are pure functions: data go in, a `TrainingRecord` comes out, and callbacks report progress and decide when to
stop. A new term of the objective, or a new surrogate of the 0-1 loss, belongs in `objective`; its setting in
`dafh.groups.recipe`.
"""
