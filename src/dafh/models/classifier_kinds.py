"""Kinds of scikit-learn's world: classifiers, the standard scaler, and pipelines.

Classifiers whose public attributes are enough to predict are built as what they were. The others come back as classes
of ours (`trees`, `layers`) that predict the same.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dafh.classifiers.fitting import is_fitted
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.models.container import Json, MalformedError
from dafh.models.description import Fields, Kind, NotPlainError, Role, Writer
from dafh.models.layers import LayeredClassifier
from dafh.models.settings import BUILDABLE, read_settings, write_settings
from dafh.models.trees import LARGEST_LEAF, BoostedTrees, as_boosted_trees
from dafh.models.values import read_columns, read_labels, read_threshold, write_columns, write_labels
from dafh.tables.encoder import TableEncoder
from dafh.tables.reader import TableReader

_WIDEST_LAYER = 2**14
"""Prediction takes memory for rows times this."""
_SMALLEST_SCALE = 1e-150


def _write_fitted(estimator: Any, name: str, writer: Writer) -> dict[str, Json]:
    """Entries that all fitted classifiers have."""
    if not is_fitted(estimator):
        raise NotPlainError("not fitted")
    settings = write_settings(getattr(estimator, "trained_as", estimator), BUILDABLE[name])
    return {
        "settings": settings,
        "labels": write_labels(np.asarray(estimator.classes_)),
        **write_columns(estimator, writer),
    }


def _read_unfitted(fields: Fields, name: str) -> Any:
    return read_settings(fields, BUILDABLE[name])


# ---- logistic regression ----


def _write_logistic(model: Any, writer: Writer) -> dict[str, Json]:
    ours = type(model) is StandardizedLogisticRegression
    name = "default logistic regression" if ours else "logistic regression"
    # After sparsify() the coefficients are a sparse matrix, whose indices compiled code would follow anywhere.
    coefficients = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_)
    intercept = np.broadcast_to(model.intercept_, len(coefficients))
    return {
        **_write_fitted(model, name, writer),
        "coefficients": writer.array(coefficients),
        "intercept": writer.array(intercept),
        **({"strength": float(model.C_), "threshold": float(model.threshold_)} if ours else {}),
    }


def _read_logistic(fields: Fields, name: str) -> Any:
    model = _read_unfitted(fields, name)
    model.classes_ = read_labels(fields, "labels")
    n_columns = read_columns(fields, model)
    m = 1 if len(model.classes_) == 2 else len(model.classes_)
    model.coef_ = fields.floats("coefficients", m, n_columns)
    model.intercept_ = fields.floats("intercept", m)
    if name == "default logistic regression":
        model.C_ = fields.number("strength", 0)
        model.threshold_ = read_threshold(fields, len(model.classes_))
    return model


# ---- the others ----


def _write_constant(model: DummyClassifier, writer: Writer) -> dict[str, Json]:
    if not is_fitted(model) or model.n_outputs_ != 1:
        raise NotPlainError("not one fitted output")
    return {
        **_write_fitted(model, "constant", writer),
        "prior": writer.array(np.asarray(model.class_prior_, np.float64)),
    }


def _read_constant(fields: Fields) -> DummyClassifier:
    model = _read_unfitted(fields, "constant")
    labels = read_labels(fields, "labels", least=1)
    prior = fields.floats("prior", len(labels), most=1)
    if (prior < 0).any() or abs(prior.sum() - 1) > 1e-6:
        raise fields.refuse("prior", "does not add up to 1")
    # Its strategy is kept in a private attribute: fitted on one row for each label it has it, and the same prior.
    model.fit(np.zeros((len(labels), 1)), labels, sample_weight=prior)
    read_columns(fields, model)
    return model


def _write_scaler(scaler: StandardScaler, writer: Writer) -> dict[str, Json]:
    if not is_fitted(scaler):
        raise NotPlainError("not fitted")
    found = {"settings": write_settings(scaler, BUILDABLE["standard scaler"]), **write_columns(scaler, writer)}
    for name, values in {"mean": scaler.mean_, "scale": scaler.scale_}.items():
        found[name] = None if values is None else writer.array(np.asarray(values, np.float64))
    return found


def _read_scaler(fields: Fields) -> StandardScaler:
    scaler = _read_unfitted(fields, "standard scaler")
    n_columns = read_columns(fields, scaler)
    scaler.mean_ = fields.floats("mean", n_columns) if fields.has("mean") else None
    scaler.scale_ = fields.floats("scale", n_columns) if fields.has("scale") else None
    if scaler.scale_ is not None and not (scaler.scale_ >= _SMALLEST_SCALE).all():
        raise fields.refuse("scale", "is not positive")
    if (scaler.with_mean and scaler.mean_ is None) or (scaler.with_std and scaler.scale_ is None):
        raise MalformedError(f"{fields.where} is not complete")
    scaler.var_ = None if scaler.scale_ is None else scaler.scale_**2
    return scaler


def _write_layers(model: Any, writer: Writer) -> dict[str, Json]:
    if is_fitted(model) and np.ndim(model.classes_) != 1:
        raise NotPlainError("several outputs")
    found = _write_fitted(model, "network", writer)
    pairs = zip(model.coefs_, model.intercepts_, strict=True)
    return {**found, "layers": [[writer.array(weight), writer.array(bias)] for weight, bias in pairs]}


def _read_layers(fields: Fields) -> LayeredClassifier:
    model = LayeredClassifier(_read_unfitted(fields, "network"))
    labels = read_labels(fields, "labels")
    read_columns(fields, model)
    weights, biases = [], []
    for number, layer in enumerate(fields.items("layers", 100)):
        if not isinstance(layer, list) or len(layer) != 2:
            raise fields.refuse("layers")
        inner = Fields({"weight": layer[0], "bias": layer[1]}, f"layer {number} of {fields.where}", fields.reader)
        weights.append(inner.floats("weight", None, None))
        biases.append(inner.floats("bias", weights[-1].shape[1]))
        if weights[-1].shape[1] > _WIDEST_LAYER:
            raise fields.refuse("layers", "is too wide")
    return model.set_layers(labels, weights, biases)


def _write_trees(model: Any, writer: Writer) -> dict[str, Json]:
    found = _write_fitted(model, "boosted trees", writer)
    trees = model if type(model) is BoostedTrees else as_boosted_trees(model)
    if trees is None:
        raise NotPlainError("its trees cannot be read as arrays")
    names = ("baseline", "roots", "children", "column", "threshold", "gaps_left", "value")
    return {**found, **{name: writer.array(getattr(trees, f"{name}_")) for name in names}}


def _read_trees(fields: Fields) -> BoostedTrees:
    model = BoostedTrees(_read_unfitted(fields, "boosted trees"))
    labels = read_labels(fields, "labels")
    n_columns = read_columns(fields, model)
    value = fields.floats("value", None, most=LARGEST_LEAF)
    n_nodes = len(value)
    return model.set_trees(
        labels,
        fields.floats("baseline", None, most=LARGEST_LEAF),
        fields.wholes("roots", None, least=0, most=n_nodes - 1),
        fields.wholes("children", n_nodes, 2, least=0, most=n_nodes - 1),
        fields.wholes("column", n_nodes, least=0, most=n_columns - 1),
        # A threshold of infinity parts missing values from all others.
        fields.floats("threshold", n_nodes, most=np.inf),
        fields.flags("gaps_left", n_nodes),
        value,
    )


# ---- pipelines ----


def _roles(pipeline: Pipeline, role: Role) -> list[Role]:
    before: Role = "unfitted" if role == "unfitted" else "transformer"
    return [*[before] * (len(pipeline.steps) - 1), role]


def _write_pipeline(pipeline: Pipeline, writer: Writer, role: Role) -> dict[str, Json]:
    steps: list[Json] = []
    for (name, step), of in zip(pipeline.steps, _roles(pipeline, role), strict=True):
        passes = step is None or isinstance(step, str)
        steps.append([name, None if passes else writer.part(step, of)])
    if steps[-1][1] is None:  # type: ignore[index]
        raise NotPlainError("no classifier at the end")
    return {"steps": steps}


def _read_pipeline(fields: Fields, role: Role) -> Pipeline:
    steps = fields.items("steps", 100)
    built: list[tuple[str, Any]] = []
    for number, step in enumerate(steps, 1):
        if not isinstance(step, list) or len(step) != 2 or not isinstance(step[0], str):
            raise fields.refuse("steps")
        of = role if role == "unfitted" or number == len(steps) else "transformer"
        passes = step[1] is None and number < len(steps)
        built.append((step[0], "passthrough" if passes else fields.reader.part(step[1], of)))
    names = [name for name, _ in built]
    if not built or len(set(names)) < len(names) or any("__" in name or name in ("steps", "") for name in names):
        raise fields.refuse("steps")
    if role != "unfitted":
        _check_widths([step for _, step in built], fields)
    return Pipeline(built)


def _check_widths(steps: list[Any], fields: Fields) -> None:
    """Refuse steps that do not take what comes out of those before them."""
    width: int | None = None
    names: list[str] | None = None
    for step in steps:
        expected = getattr(step, "n_features_in_", None)
        named = getattr(step, "feature_names_in_", None)
        aside = getattr(step, "_aside", None) or ()
        if aside:  # Columns for its pooled classifier, which stand anywhere among the others.
            width = None if width is None else width - len(aside)
            names = None if names is None else [name for name in names if name not in aside]
        other_names = names is not None and named is not None and list(named) != names
        if (width is not None and expected is not None and expected != width) or other_names:
            raise fields.refuse("steps", "holds steps that do not fit together")
        if isinstance(step, TableEncoder | TableReader):
            names = list(step.get_feature_names_out())
            width = len(names)
        elif type(step) is StandardScaler:
            width, names = expected, None
        elif step != "passthrough":
            width, names = None, None  # Foreign steps are the reader's own responsibility.


def _unfitted(name: str, own: type[BaseEstimator], *more: type[BaseEstimator]) -> Kind:
    def write(estimator: Any, _: Writer) -> dict[str, Json]:
        return {"settings": write_settings(getattr(estimator, "trained_as", estimator), BUILDABLE[name])}

    return Kind(name, "unfitted", (own, *more), write, lambda fields: _read_unfitted(fields, name))


CLASSIFIER_KINDS: tuple[Kind, ...] = (
    Kind(
        "default logistic regression",
        "classifier",
        (StandardizedLogisticRegression,),
        _write_logistic,
        lambda fields: _read_logistic(fields, "default logistic regression"),
    ),
    Kind(
        "logistic regression",
        "classifier",
        (LogisticRegression,),
        _write_logistic,
        lambda fields: _read_logistic(fields, "logistic regression"),
    ),
    Kind("constant", "classifier", (DummyClassifier,), _write_constant, _read_constant),
    Kind("network", "classifier", (MLPClassifier, LayeredClassifier), _write_layers, _read_layers),
    Kind("boosted trees", "classifier", (HistGradientBoostingClassifier, BoostedTrees), _write_trees, _read_trees),
    Kind("standard scaler", "transformer", (StandardScaler,), _write_scaler, _read_scaler),
    Kind(
        "pipeline",
        "classifier",
        (Pipeline,),
        lambda pipeline, writer: _write_pipeline(pipeline, writer, "classifier"),
        lambda fields: _read_pipeline(fields, "classifier"),
    ),
    Kind(
        "pipeline",
        "unfitted",
        (Pipeline,),
        lambda pipeline, writer: _write_pipeline(pipeline, writer, "unfitted"),
        lambda fields: _read_pipeline(fields, "unfitted"),
    ),
    _unfitted("default logistic regression", StandardizedLogisticRegression),
    _unfitted("logistic regression", LogisticRegression),
    _unfitted("constant", DummyClassifier),
    _unfitted("network", MLPClassifier, LayeredClassifier),
    _unfitted("boosted trees", HistGradientBoostingClassifier, BoostedTrees),
    _unfitted("standard scaler", StandardScaler),
)
