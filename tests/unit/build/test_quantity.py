"""Resource quantities."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.build.quantity import ZERO, Notation, Quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        (2, 2),
        ("2", 2),
        ("+2", 2),
        ("-2", -2),
        ("0", 0),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1n", Fraction(1, 10**9)),
        ("1u", Fraction(1, 10**6)),
        ("1m", Fraction(1, 1000)),
        ("1k", 10**3),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1.5e-3", Fraction(15, 10**4)),
        ("12e+2", 1200),
        ("0e999999999999", 0),
    ],
)
def test_amounts(text, amount):
    assert parse_quantity(text).amount == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        pytest.param("0.1n", Fraction(1, 10**9), id="less than a billionth is a billionth"),
        pytest.param("1e-999999999", Fraction(1, 10**9), id="a tiny exponent"),
        pytest.param("1e999999999", 2**63 - 1, id="a huge exponent"),
        pytest.param("9999Ei", 2**63 - 1, id="more than there is"),
        pytest.param("-9999Ei", -(2**63 - 1), id="less than there is"),
    ],
)
def test_rounding_as_in_kubernetes(text, amount):
    assert parse_quantity(text).amount == amount


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "1Kb", "1ki", "m", ".", "1e", "1e1.5", "1.2.3", "--1", "\u0661", "nan", "0x1"],
)
def test_invalid_quantities(text):
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("21", "21"),
        ("42Gi", "42Gi"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.3", "300m"),
        ("1000", "1k"),
        ("1100", "1100"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1.0001Ki", "1024102400u"),
        ("1000e3", "1e6"),
        ("5e-1", "500e-3"),
        ("7e0", "7"),
        ("-2Gi", "-2Gi"),
    ],
)
def test_the_canonical_form(text, canonical):
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        pytest.param(["1", "10", "10"], "21", id="CPUs"),
        pytest.param(["2Gi", "20Gi", "20Gi"], "42Gi", id="memory"),
        pytest.param(["100m", "200m"], "300m", id="what floating point gets wrong"),
        pytest.param(["500m", "500m"], "1", id="halves make a whole"),
        pytest.param(["1Gi", "1G"], "2073741824", id="mixed, written like the first"),
        pytest.param(["0", "1Gi"], "1Gi", id="nothing has no notation"),
        pytest.param(["1Gi", "500m"], "1073741824500m", id="a part of a byte"),
    ],
)
def test_sums(parts, total):
    assert str(sum(map(parse_quantity, parts), ZERO)) == total


AMOUNTS = st.integers(-(2**63) + 1, 2**63 - 1).map(lambda n: Fraction(n, 10**9)) | st.integers(
    -(2**63) + 1, 2**63 - 1
).map(Fraction)
QUANTITIES = st.builds(Quantity, AMOUNTS, st.sampled_from(Notation))


@given(QUANTITIES)
def test_the_text_of_a_quantity_can_be_parsed(quantity):
    assert parse_quantity(str(quantity)).amount == quantity.amount


@given(st.builds(Quantity, AMOUNTS, st.sampled_from([Notation.DECIMAL, Notation.EXPONENT])))
def test_the_canonical_form_is_stable(quantity):
    assert str(parse_quantity(str(quantity))) == str(quantity)


@given(st.lists(QUANTITIES), st.randoms(use_true_random=False))
def test_the_order_of_a_sum_does_not_matter(quantities, random):
    total = sum(quantities, ZERO).amount
    random.shuffle(quantities)
    assert sum(quantities, ZERO).amount == total == sum(each.amount for each in quantities)


@given(QUANTITIES, st.integers(0, 50))
def test_a_product_is_a_sum_of_equals(quantity, times):
    assert (quantity * times).amount == sum([quantity] * times, ZERO).amount
