"""The alerts and the dashboard: their queries are about metrics and labels that exist."""

import json
import re
from pathlib import Path

import pytest
import yaml

from scripts import check_docs
from scripts.alerts import ALERTS, RUNBOOK, Alert
from scripts.grafana_dashboard import ROWS, Panel, dashboard
from tests.support import promql
from tests.support.promql import SCRAPE, WrongQuery

ROOT = Path(__file__).parents[2]
SERIES = promql.exported()
PANELS = [panel for row in ROWS.values() for panel in row]
# What Grafana replaces before it sends a query.
VARIABLES = {"$__rate_interval": "5m", "$job": "mpi-operator"}
# Exported by every program with the same client library; leadership is `mpi_operator_is_leader`.
NOT_SHOWN = {"leader_election_master_status"}


def sent(query: str) -> str:
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    return query


def shown_labels(text: str) -> set[str]:
    return set(re.findall(r"\{\{ *(?:\$labels\.)?(\w+) *\}\}", text)) - {"value"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_asks_for_series_and_labels_that_exist(alert: Alert):
    found = promql.labels(alert.query, SERIES)
    assert shown_labels(alert.description) <= found


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_has_a_section_in_the_runbook_that_says_what_to_do(alert: Alert):
    annotations = alert.rule["annotations"]
    path, _, anchor = annotations["runbook"].partition("#")
    assert anchor in check_docs._anchors(ROOT / path)
    assert annotations["summary"]
    assert annotations["description"].endswith(".")
    assert alert.severity in ("critical", "warning", "info")


def test_the_runbook_has_no_section_for_an_alert_that_does_not_exist():
    sections = re.findall(r"^### (\w+)$", (ROOT / RUNBOOK).read_text(), re.MULTILINE)
    assert sections == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_a_panel_asks_for_series_and_labels_that_exist(panel: Panel):
    for legend, query in panel.queries.items():
        assert 'job=~"$job"' in query
        assert shown_labels(legend) <= promql.labels(sent(query), SERIES)


def test_every_metric_of_the_operator_is_in_a_panel():
    shown = set().union(*(promql.names(sent(q)) for each in PANELS for q in each.queries.values()))
    families = {re.sub("_(bucket|count|sum)$", "", name) for name in shown}
    own = {re.sub("_(bucket|count|sum)$", "", name) for name in SERIES if "process_" not in name}
    assert own - families == NOT_SHOWN


def test_panels_do_not_overlap():
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
    assert max(x for x, _ in taken) == 23


def test_panels_have_numbers_of_their_own():
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_all_forms_have_the_same_rules():
    folder = ROOT / "deploy/monitoring"
    plain = yaml.safe_load((folder / "alerts.yaml").read_text())
    rule = yaml.safe_load((folder / "prometheus-rule.yaml").read_text())
    assert rule["spec"] == plain
    assert len(plain["groups"][0]["rules"]) == len(ALERTS)
    assert json.loads((folder / "grafana-dashboard.json").read_text()) == dashboard()


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("sum(rate(x_total[5m])", id="no PromQL"),
        pytest.param("mpi_operator_jobs_lost_total", id="no such metric"),
        pytest.param('workqueue_depth{queue="mpijobs"}', id="no such label to select by"),
        pytest.param("sum by (code) (workqueue_depth)", id="no such label to sum by"),
        pytest.param(
            "histogram_quantile(0.9, sum(rate(workqueue_queue_duration_seconds_bucket[5m])))",
            id="a histogram without its buckets",
        ),
        pytest.param(
            "mpi_operator_is_leader / workqueue_depth", id="sides whose labels never match"
        ),
        pytest.param(
            "workqueue_depth and on (resource) informer_cached_objects",
            id="a match by a label that one side lacks",
        ),
    ],
)
def test_a_wrong_query_is_noticed(query: str):
    with pytest.raises(WrongQuery):
        promql.labels(query, SERIES)


def test_prometheus_adds_labels_of_its_own():
    assert promql.labels("mpi_operator_is_leader", SERIES) == SCRAPE
