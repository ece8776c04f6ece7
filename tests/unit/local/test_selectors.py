import pytest

from mpi_operator.local.apiserver.selectors import SelectorError, parse_fields, parse_labels

RED = {"team": "red", "stage": "test", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("", True),
        ("  ", True),
        ("team=red", True),
        ("team==red", True),
        ("team = red", True),
        ("team=blue", False),
        ("team!=blue", True),
        ("team!=red", False),
        ("nothing!=red", True),
        ("nothing=red", False),
        ("team in (red)", True),
        ("team in (blue,red)", True),
        ("team in ( blue , red )", True),
        ("team in(red)", True),
        ("team in (blue)", False),
        ("nothing in (red)", False),
        ("team notin (blue)", True),
        ("team notin (red,blue)", False),
        ("nothing notin (red)", True),
        ("team", True),
        ("nothing", False),
        ("!nothing", True),
        ("! nothing", True),
        ("!team", False),
        ("empty=", True),
        ("empty", True),
        ("team=", False),
        ("empty in (,a)", True),
        ("team=red,stage=test", True),
        ("team=red,stage!=test", False),
        ("team=red, stage in (test), !nothing", True),
        ("in=x", False),
        ("example.com/team-name notin (a.b_c)", True),
    ],
)
def test_label_selectors(selector, chosen):
    assert parse_labels(selector).matches(RED) is chosen


@pytest.mark.parametrize(
    "selector",
    ["=red", "team=red,", ",team", "team in red", "team in (red", "team red", "!", "a=b=c", "()"],
)
def test_an_invalid_label_selector_is_refused(selector):
    with pytest.raises(SelectorError, match="unable to parse requirement"):
        parse_labels(selector)


KNOWN = frozenset(("metadata.name", "status.phase"))


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("", True),
        ("metadata.name=pi", True),
        ("metadata.name==pi", True),
        ("metadata.name!=pi", False),
        ("metadata.name=e", False),
        ("status.phase!=Failed", True),
        ("status.phase=", True),
        ("metadata.name=pi,status.phase=Running", False),
    ],
)
def test_field_selectors(selector, chosen):
    assert parse_fields(selector, KNOWN).matches({"metadata.name": "pi"}) is chosen


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("spec.colour=red", "field label not supported: spec.colour"),
        ("metadata.name", "invalid selector"),
    ],
)
def test_an_invalid_field_selector_is_refused(selector, words):
    with pytest.raises(SelectorError, match=words):
        parse_fields(selector, KNOWN)
