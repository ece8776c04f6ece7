import pytest

from benchmarks.goal import at_least, at_most
from benchmarks.operators import comparison
from benchmarks.operators.comparability import Environment, NotComparable
from benchmarks.operators.samples import Sample, comparable
from benchmarks.operators.spread import number, spread

THE_SAME = Environment(servers="abc", crd="def", objects={"pods": 0})


def sample(subject, number, value, *, case="c", environment=THE_SAME):
    return Sample(subject, case, number, {"v": value}, environment)


def against(samples, **options):
    return comparison.against(samples, "tuned", what="w", value="v", unit="u", case="c", **options)


def test_ratios_are_of_the_same_round():
    samples = [
        sample("ours", 0, 10),
        sample("tuned", 0, 5),
        sample("ours", 1, 40),
        sample("tuned", 1, 10),
        sample("ours", 2, 99),
    ]
    found = against(samples)
    assert (found.ratio.least, found.ratio.median, found.ratio.most) == (2, 3, 4)
    assert (found.ours.median, found.theirs.median) == (25, 7.5)


@pytest.mark.parametrize(
    ("wanted", "is_met"),
    [(at_least(2), True), (at_least(2.1), False), (at_most(2), True), (at_most(1.9), False)],
)
def test_a_goal_is_met_or_missed(wanted, is_met):
    found = against([sample("ours", 0, 4), sample("tuned", 0, 2)], wanted=wanted)
    assert found.is_met is is_met


def test_a_subject_that_was_not_measured_is_left_out():
    assert against([sample("ours", 0, 4)]) is None


def test_where_they_need_nothing_there_is_no_ratio_and_no_goal():
    found = against([sample("ours", 0, 4), sample("tuned", 0, 0)], wanted=at_most(1))
    assert (found.ratio, found.wanted, found.is_met) == (None, None, True)


def test_a_goal_may_be_absolute():
    samples = [sample("ours", 0, 0), sample("ours", 1, 3), sample("ours", 2, 5)]
    samples += [sample("tuned", 0, 9)]
    found = comparison.absolute(
        samples, "tuned", what="w", value="v", unit="u", case="c", wanted=at_most(0)
    )
    assert found
    assert (found.measured, found.is_met) == (3, False)


def test_a_case_is_compared_with_another():
    samples = [sample("ours", 0, 3, case="big"), sample("ours", 0, 2, case="small")]
    found = comparison.between_cases(
        samples, ("big", "small"), what="w", value="v", unit="u", wanted=at_most(1.5)
    )
    assert found
    assert (found.measured, found.is_met) == (1.5, True)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        pytest.param(
            Environment("xyz", "def", {"pods": 0}),
            r"'ours, c, round 0' and 'tuned, c, round 0' .*servers was abc, then xyz",
            id="another API server, or other flags",
        ),
        pytest.param(Environment("abc", "x", {"pods": 0}), "crd", id="another CRD"),
        pytest.param(Environment("abc", "def", {"pods": 7}), "objects", id="not cleaned up"),
        pytest.param(
            Environment("abc", "def", {"pods": 0}, operators=1),
            "another operator was running",
            id="not alone",
        ),
    ],
)
def test_samples_of_different_environments_are_not_comparable(other, message):
    samples = [sample("ours", 0, 1), sample("tuned", 0, 1, environment=other)]
    with pytest.raises(NotComparable, match=message):
        comparable(samples)


def test_samples_of_one_environment_are_comparable():
    samples = [sample("ours", 0, 1), sample("tuned", 0, 1)]
    assert comparable(samples) == samples


def test_a_spread_of_nothing_is_refused():
    with pytest.raises(ValueError, match="Nothing was measured"):
        spread([])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.0123, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_numbers_have_the_digits_that_matter(value, text):
    assert number(value) == text
