import json
from xml.etree import ElementTree

import pytest

from benchmarks.goal import at_least
from benchmarks.operators import charts, plots, results
from benchmarks.operators.comparability import Environment
from benchmarks.operators.comparison import Comparison
from benchmarks.operators.samples import Sample
from benchmarks.operators.spread import spread
from benchmarks.operators.table import facts_lines, markdown, table

MET = Comparison(
    "16 workers made",
    "pods/s",
    spread([100, 120]),
    "tuned",
    spread([20, 24]),
    spread([5, 6]),
    at_least(4),
)
ALONE = Comparison("writes", "writes", spread([3]), "", None, None, at_least(4))


def test_the_table_has_a_line_for_each_comparison():
    head, met, missed = table([MET, ALONE]).splitlines()
    assert head.split() == ["ours", "theirs", "rival", "ratio", "goal"]
    assert met.split("  ")[0] == "16 workers made"
    assert "110 pods/s" in met
    assert "Go, tuned" in met
    assert "5.50 (5.00 to 6.00)" in met
    assert met.endswith("≥ 4   met")
    assert missed.endswith("≥ 4   MISSED")


def test_documents_get_the_same_lines():
    head, rule, met, missed = markdown([MET, ALONE]).splitlines()
    assert head.count("|") == rule.count("|") == met.count("|") == missed.count("|")
    assert met.startswith("| 16 workers made | 110 pods/s |")


def test_columns_are_as_wide_as_their_widest_cell():
    lines = table([MET, ALONE]).splitlines()
    assert lines[1].index("110 pods/s") == lines[2].index("3.00 writes") == lines[0].index("ours")


def test_facts_are_lined_up():
    assert list(facts_lines({"a": 1, "long": "x"})) == ["a     1", "long  x"]


def creation_sample(subject, workers, seconds):
    return Sample(subject, f"{workers} workers", 0, {"seconds": seconds}, Environment("", "", {}))


def test_results_are_plain_data_with_everything_in_it():
    found = results.document(
        {"cores": 2}, {"creation": [creation_sample("ours", 16, 1.0)]}, {"creation": [MET]}, {}
    )
    read = json.loads(json.dumps(found))
    assert read["machine"] == {"cores": 2}
    assert read["figures"]["creation"]["comparisons"][0]["is_met"] is True
    assert read["figures"]["creation"]["samples"][0]["values"] == {"seconds": 1.0}


def texts(drawing):
    return [each.text for each in ElementTree.fromstring(drawing).iter() if each.text]


def test_every_contender_has_a_line_in_the_picture():
    samples = [
        creation_sample(subject, workers, seconds)
        for subject, seconds in (("ours", 0.1), ("tuned", 1.0), ("raw", 0.09))
        for workers in (16, 64)
    ]
    drawn = charts.charts("x", {"creation": samples}, [MET])
    assert sorted(drawn) == ["x-creation.svg", "x-ratios.svg"]
    assert {"ours", "Go, tuned", "plain POSTs"} < set(texts(drawn["x-creation.svg"]))
    assert drawn["x-creation.svg"].count("<polyline") == 3


def test_ratios_have_a_bar_each_and_what_has_none_is_left_out():
    assert "16 workers made (Go, tuned)" in texts(charts.ratios([MET, ALONE]))
    assert charts.ratios([MET, ALONE]).count("<rect") == 2  # the ground, and a bar


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-9, 1e9])
def test_any_number_can_be_drawn(value):
    bars = plots.bars("t", [("<a> & b", value, None)])
    lines = plots.lines("t", {"s": [(1.0, value)]}, "x", "y")
    for picture in (bars, lines):
        assert ElementTree.fromstring(picture).tag.endswith("svg")
