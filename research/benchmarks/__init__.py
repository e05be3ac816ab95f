"""Speed and memory, mostly as ratios of two measurements in one run, which depend less on the machine.

- `speed`: start, audit and fits;
- `scale`: rows larger than memory; `scoring`: `dafh predict` on long files;
- `monitor`: `Monitor.update` beside `predict`;
- `boosting`: fits beside gradient boosting;
- `rivals`: AUC on Adult beside published figures;
- `incumbents`: are recommendations right about models that went wrong?

``python -m research.benchmarks.speed`` fills the table of speed.md; with ``--quick``, each runs on small sizes in a
minute or so and writes nothing: its figures mean nothing then, but it shows that the benchmark still runs.
"""
