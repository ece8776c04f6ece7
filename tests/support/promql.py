"""The labels of the result of a PromQL query, checked against the metrics of the operator."""

from collections.abc import Mapping

import prometheus_client
import promql_parser as promql
from prometheus_client import CollectorRegistry

from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.kube.metrics import Metrics
from mpi_operator.webhook.metrics import WebhookMetrics

Labels = frozenset[str]
Series = Mapping[str, Labels]

# What Prometheus adds to each series of a pod that it scrapes.
SCRAPE: Labels = frozenset({"job", "instance", "namespace", "pod"})
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
_SETS = ("and", "or", "unless")


class WrongQuery(Exception):
    """A query that Prometheus would refuse, or that could never have a result."""


def exported() -> dict[str, Labels]:
    """Every series of an operator by name, with its own labels."""
    registry = CollectorRegistry()
    JobMetrics(registry)
    WebhookMetrics(registry)
    Metrics(registry)
    prometheus_client.ProcessCollector(registry=registry)
    return {
        f"{family.name}{suffix}": own | ({"le"} if suffix == "_bucket" else frozenset())
        for collector in registry._collector_to_names
        for own in [frozenset(getattr(collector, "_labelnames", ()))]
        for family in collector.collect()
        for suffix in _SUFFIXES.get(family.type, ("",))
    }


def names(query: str) -> set[str]:
    """The series that a query uses."""
    found: set[str] = set()

    def visit(each: promql.Expr) -> None:
        if isinstance(each, promql.VectorSelector) and each.name:
            found.add(each.name)

    promql.walk(promql.parse(query), visit)
    return found


def labels(query: str, series: Series) -> Labels:
    """The labels of the result of a query."""
    try:
        parsed = promql.parse(query)
    except ValueError as error:
        raise WrongQuery(f"{query}: {error}") from error
    return _labels(parsed, series) or frozenset()


def _labels(each: promql.Expr, series: Series) -> Labels | None:
    """None for a scalar."""
    match each:
        case promql.VectorSelector():
            return _of_selector(each, series)
        case promql.MatrixSelector():
            return _of_selector(each.vector_selector, series)
        case promql.ParenExpr():
            return _labels(each.expr, series)
        case promql.NumberLiteral():
            return None
        case promql.Call():
            return _of_call(each, series)
        case promql.AggregateExpr():
            return _of_aggregation(each, series)
        case promql.BinaryExpr():
            return _of_operation(each, series)
    raise WrongQuery(f"no rule for {type(each).__name__}: {each.prettify()}")


def _of_selector(selector: promql.VectorSelector, series: Series) -> Labels:
    name = selector.name or ""
    if name not in series:
        raise WrongQuery(f"the operator exports no {name}")
    known = series[name] | SCRAPE
    _require({matcher.name for matcher in selector.matchers.matchers}, known, name)
    return known


def _of_call(call: promql.Call, series: Series) -> Labels | None:
    function = call.func.name
    arguments = [_labels(each, series) for each in call.args]
    if function == "time":
        return None
    if function in ("vector", "absent"):
        return frozenset()
    [vector] = [each for each in arguments if each is not None]
    if function == "histogram_quantile":
        _require({"le"}, vector, function)
        return vector - {"le"}
    return vector


def _of_aggregation(aggregation: promql.AggregateExpr, series: Series) -> Labels:
    inner = _labels(aggregation.expr, series)
    if inner is None:
        raise WrongQuery(f"aggregation of a scalar: {aggregation.prettify()}")
    modifier = aggregation.modifier
    if modifier is None:
        return frozenset()
    if modifier.type != promql.AggModifierType.By:
        raise WrongQuery(f"no rule for without: {aggregation.prettify()}")
    _require(set(modifier.labels), inner, aggregation.prettify())
    return frozenset(modifier.labels)


def _of_operation(operation: promql.BinaryExpr, series: Series) -> Labels | None:
    left, right = _labels(operation.lhs, series), _labels(operation.rhs, series)
    if left is None or right is None:
        return right if left is None else left
    operator = str(operation.op)
    matching = operation.modifier.matching if operation.modifier else None
    if matching is not None:
        for side in (left, right):
            _require(set(matching.labels), side, operation.prettify())
    elif left != right and operator != "or":
        raise WrongQuery(f"the sides have different labels: {operation.prettify()}")
    if matching is None or operator in _SETS:
        return left & right if operator == "or" else left
    return frozenset(matching.labels)


def _require(wanted: set[str], known: Labels, where: str) -> None:
    if missing := wanted - known:
        raise WrongQuery(f"{where} has no label {', '.join(sorted(missing))}")
