"""Speed and memory, mostly as ratios of two measurements in one run, which depend less on the machine.

- `speed`: start and audit; `boosting`: fits, beside gradient boosting;
- `scale`: rows larger than memory;
- `wide`: scorecards of wide tables beside gradient boosting;
- `incumbents`: models that went wrong, corrected by DAFH or MCGrad;
- `losers`: who loses from a rival, found without naming anybody;
- `slices`: planted groups, found by `compare`, SliceLine and DivExplorer.

``python -m research.benchmarks.speed`` fills the table of speed.md; with ``--quick``, each runs on small sizes in a
minute or so and writes nothing: its figures mean nothing then, but it shows that the benchmark still runs.
"""
