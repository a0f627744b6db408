"""Plots as SVG, without a library: lines over a logarithmic or an even axis, and bars beside each other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_COLORS = ("#2563eb", "#ea580c", "#059669", "#7c3aed", "#64748b")
_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 56


@dataclass(frozen=True)
class Plot:
    """Lines of points (x, y); `is_logarithmic` spaces x by its order of magnitude."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    is_logarithmic: bool = False

    def svg(self) -> str:
        xs = sorted({x for points in self.series.values() for x, _ in points})
        top = _round_up(max(y for points in self.series.values() for _, y in points))
        body = [*_frame(self.title, self.x_label, self.y_label, top)]
        for x in xs:
            body.append(_text(self._across(x, xs), _HEIGHT - _BOTTOM + 18, f"{x:,g}", "middle"))
        for number, (name, points) in enumerate(self.series.items()):
            color = _COLORS[number % len(_COLORS)]
            places = [(self._across(x, xs), _up(y, top)) for x, y in sorted(points)]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            body.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
            body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in places]
            body += _legend(number, name, color)
        return _document(body)

    def _across(self, x: float, xs: Sequence[float]) -> float:
        low, high, at = (math.log10(v) for v in (xs[0], xs[-1], x)) if self.is_logarithmic else (xs[0], xs[-1], x)
        share = (at - low) / (high - low) if high > low else 0.5
        return _LEFT + 20 + share * (_WIDTH - _LEFT - _RIGHT - 40)


@dataclass(frozen=True)
class Bars:
    """Groups of bars: for each group a value of every series."""

    name: str
    title: str
    y_label: str
    groups: Mapping[str, Mapping[str, float]]

    def svg(self) -> str:
        names = list(dict.fromkeys(name for values in self.groups.values() for name in values))
        top = _round_up(max(value for values in self.groups.values() for value in values.values()))
        room = (_WIDTH - _LEFT - _RIGHT) / len(self.groups)
        thick = room * 0.7 / len(names)
        body = [*_frame(self.title, "", self.y_label, top)]
        for place, (group, values) in enumerate(self.groups.items()):
            start = _LEFT + room * (place + 0.15)
            body.append(_text(start + room * 0.35, _HEIGHT - _BOTTOM + 18, group, "middle"))
            for number, name in enumerate(names):
                value = values.get(name, 0.0)
                x, y = start + thick * number, _up(value, top)
                body.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{thick * 0.9:.1f}" height="{_HEIGHT - _BOTTOM - y:.1f}" '
                    f'fill="{_COLORS[number % len(_COLORS)]}"><title>{escape(name)}: {value:,.4g}</title></rect>'
                )
                body.append(_text(x + thick * 0.45, y - 4, f"{value:,.3g}", "middle", size=9))
        for number, name in enumerate(names):
            body += _legend(number, name, _COLORS[number % len(_COLORS)])
        return _document(body)


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, … above."""
    if value <= 0:
        return 1.0
    magnitude = 10 ** math.floor(math.log10(value))
    return next(step * magnitude for step in (1, 2, 5, 10) if step * magnitude >= value)


def _up(y: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - y / top * (_HEIGHT - _TOP - _BOTTOM)


def _frame(title: str, x_label: str, y_label: str, top: float) -> list[str]:
    lines = [_text(_LEFT, 20, title, size=14, weight="bold")]
    for step in range(5):
        value = top * step / 4
        y = _up(value, top)
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#94a3b8" opacity="0.4"/>'
        )
        lines.append(_text(_LEFT - 6, y + 4, f"{value:,g}", "end"))
    lines.append(_text(_WIDTH - _RIGHT, _HEIGHT - 22, x_label, "end"))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    lines.append(
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle" font-size="11">'
        f"{escape(y_label)}</text>"
    )
    return lines


def _legend(number: int, name: str, color: str) -> list[str]:
    x = _LEFT + number * 170
    return [
        f'<rect x="{x}" y="{_HEIGHT - 14}" width="10" height="10" fill="{color}"/>',
        _text(x + 15, _HEIGHT - 5, name),
    ]


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def _document(body: Sequence[str]) -> str:
    """On paper of its own, so that it can be read on a dark page too."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
    )
    style = 'font-family="system-ui, sans-serif" fill="#0f172a">'
    return "\n".join([head + style, '<rect width="100%" height="100%" fill="#ffffff"/>', *body, "</svg>", ""])
