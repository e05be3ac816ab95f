import os

# Before SciPy is imported: without it scikit-learn skips its checks of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from importlib.metadata import version

# Most networks of the tests are small and train for few steps: compiling four shapes took 12 s of processor time, and
# takes 3 s with these settings. Steps take three times as long, and decisions of a fit differed by 4e-8. Where
# XLA_FLAGS is set, to nothing even, programs are those of users: `make slow` does that. XLA ends the process if it does
# not know a flag, and other versions have others.
if "XLA_FLAGS" not in os.environ and version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import hypothesis
import pytest
from threadpoolctl import threadpool_limits

import dafh
from command_line import people, run
from dafh import tabular_pipeline
from dafh.datasets import make_grouped_classification, make_paper_synthetic
from model_files import people as model_people
from model_files import quick

hypothesis.settings.register_profile("dafh", deadline=None, derandomize=True, max_examples=15)
# For `make slow`.
hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("dafh"), max_examples=300)
hypothesis.settings.load_profile("dafh")
# For `make mutation`, which wants to know that a test fails, not the simplest example with which it does.
hypothesis.settings.register_profile(
    "mutation",
    hypothesis.settings.get_profile("dafh"),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
# Tests run in one process per core, and their threads would wait for each other: on two busy cores, gradient boosting
# of 1,500 rows takes ten times as long with two threads as with one.
threadpool_limits(1)


@pytest.fixture(scope="session")
def paper_data():
    return make_paper_synthetic(4_000, random_state=0)


@pytest.fixture(scope="session")
def grouped_data():
    """Three groups, three classes, four features."""
    return make_grouped_classification(1_500, n_features=4, n_groups=3, n_classes=3, random_state=0)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a table, a model fitted on it by the command line, and the held-out rows."""
    path = tmp_path_factory.mktemp("people")
    people().to_csv(path / "people.csv", index=False)
    arguments = ["--target", "hired", "--sensitive", "sex", "--test-size", "0.3", "--out", path / "model.dafh"]
    result = run("fit", path / "people.csv", *arguments)
    assert result.exit_code == 0, result.output
    (path / "fit.txt").write_text(result.output)
    return path


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Path of a model file, and the model in it."""
    table, y, _ = model_people()
    model = tabular_pipeline(quick()).fit(table, y)
    path = tmp_path_factory.mktemp("models") / "model.dafh"
    dafh.save(model, path, details={"rows": len(table)})
    return path, model


@pytest.fixture
def optimized():
    """Programs as users have them, for a fit of so many steps that they repay their compilation."""
    import jax  # Here only: most workers never need it.

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def blank_charts(monkeypatch):
    """Pages with an empty chart in each place, for tests of words and tables: drawing all takes half a second."""
    import altair

    from dafh import plots

    blank = altair.layer(altair.Chart().mark_point())
    names = ("gains", "named_groups", "preference_matrix", "scorecard_chart")
    for name in names:
        monkeypatch.setattr(plots, name, lambda *arguments, **options: blank)


@pytest.fixture
def small_sample(monkeypatch):
    """A sample of 2,000 rows instead of 200,000, so that fits of 6,000 rows go through blocks."""
    monkeypatch.setattr("dafh.large.SAMPLE_SIZE", 2000)
