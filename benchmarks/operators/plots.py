"""SVG plots: lines on logarithmic axes, and bars of ratios with their goals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 720, 420, 80, 50, 50
_COLOURS = ("#0b6e99", "#c0392b", "#e0a030", "#6b6b6b", "#4a8c3f")
_BAR = 26


def lines(title: str, series: Mapping[str, Points], x_label: str, y_label: str) -> str:
    """Lines with a legend, both axes logarithmic."""
    points = [point for each in series.values() for point in each]
    x = _Axis([x for x, _ in points], _LEFT, _WIDTH - 150)
    y = _Axis([y for _, y in points], _HEIGHT - _BOTTOM, _TOP)
    parts = [*_grid(x, y), *_labels(x_label, y_label)]
    for index, (name, found) in enumerate(series.items()):
        parts += _line(name, sorted(found), x, y, index)
    return _drawing(title, _HEIGHT, parts)


def bars(title: str, rows: Sequence[tuple[str, float, float | None]]) -> str:
    """A bar for each (name, ratio, goal) on a logarithmic axis around 1; goals are marks."""
    numbers = [value for _, *both in rows for value in both if value]
    axis = _Axis([*numbers, 1.0], 330, _WIDTH - 90)
    parts = [part for index, row in enumerate(rows) for part in _bar(index, row, axis)]
    bottom = _TOP + len(rows) * _BAR
    parts.append(_segment((axis(1.0), _TOP - 6), (axis(1.0), bottom), "#000"))
    return _drawing(title, bottom + 30, parts)


class _Axis:
    """A logarithmic axis from one coordinate to another."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self.low = math.floor(math.log10(min(positive)))
        self.high = max(math.ceil(math.log10(max(positive))), self.low + 1)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low) if value > 0 else 0.0
        return self._start + part * (self._end - self._start)

    def ticks(self) -> Iterator[float]:
        return (10.0**power for power in range(self.low, self.high + 1))


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    for tick in x.ticks():
        yield _segment((x(tick), _TOP), (x(tick), _HEIGHT - _BOTTOM), "#ddd")
        yield _text(x(tick), _HEIGHT - _BOTTOM + 18, f"{tick:g}", "middle")
    for tick in y.ticks():
        yield _segment((_LEFT, y(tick)), (_WIDTH - 150, y(tick)), "#ddd")
        yield _text(_LEFT - 8, y(tick) + 4, f"{tick:g}", "end")


def _labels(x_label: str, y_label: str) -> Iterator[str]:
    yield _text((_LEFT + _WIDTH - 150) / 2, _HEIGHT - 10, x_label, "middle")
    yield _text(_LEFT, _TOP - 8, y_label, "middle")


def _line(name: str, points: Points, x: _Axis, y: _Axis, index: int) -> Iterator[str]:
    colour = _COLOURS[index % len(_COLOURS)]
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for a, b in points:
        yield f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3.5" fill="{colour}"/>'
    height = _TOP + 20 * index
    yield _segment((_WIDTH - 140, height), (_WIDTH - 118, height), colour)
    yield _text(_WIDTH - 112, height + 4, name)


def _bar(index: int, row: tuple[str, float, float | None], axis: _Axis) -> Iterator[str]:
    name, ratio, goal = row
    top = _TOP + index * _BAR
    ends = sorted((axis(1.0), axis(ratio)))
    yield _text(320, top + 15, name, "end")
    yield (
        f'<rect x="{ends[0]:.1f}" y="{top + 3}" width="{max(ends[1] - ends[0], 1):.1f}"'
        f' height="{_BAR - 8}" fill="{_COLOURS[0]}"/>'
    )
    yield _text(_WIDTH - 80, top + 15, f"{ratio:.2f}")
    if goal:
        yield _segment((axis(goal), top), (axis(goal), top + _BAR - 2), _COLOURS[1])


def _segment(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    (a, b), (c, d) = start, end
    return f'<path d="M{a:.1f},{b:.1f}L{c:.1f},{d:.1f}" stroke="{colour}" stroke-width="1.5"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _drawing(title: str, height: float, parts: Sequence[str]) -> str:
    body = "\n".join((_text(_WIDTH / 2, 22, title, "middle"), *parts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}"'
        f' font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%"'
        f' fill="#fff"/>\n{body}\n</svg>\n'
    )
