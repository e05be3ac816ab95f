"""Studies: the paper's tables and figures, the synthetic experiment, and checks of the guarantee."""
