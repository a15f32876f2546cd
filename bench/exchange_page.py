# SPDX-License-Identifier: Apache-2.0
"""Writes measurements of bench/exchange into docs/exchange.md, and plots of them beside that page."""
import math

from exchange_grid import AUTOMATIC, cells, ways_near_best
from exchange_table import columns_of, markdown

BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->\n"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, KEY = 640, 400, 60, 40, 30, 150
COLOURS = ("#000000", "#888888", "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#17becf")


class Axis:
    """A logarithmic axis between two coordinates of the picture."""

    def __init__(self, values, first, last):
        self._low = math.floor(math.log10(min(values)))
        self._high = max(math.ceil(math.log10(max(values))), self._low + 1)
        self._first, self._last = first, last

    def at(self, value):
        return self._first + (self._last - self._first) * (math.log10(value) - self._low) / (self._high - self._low)

    def ticks(self):
        return [10.0 ** exponent for exponent in range(self._low, self._high + 1)]


def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'


def line(x1, y1, x2, y2, colour, width=1):
    return f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="{colour}" stroke-width="{width}"/>'


def plot(title, curves):
    """Returns an SVG of milliseconds over density; curves: {name: [(density, ms)]}."""
    across = Axis([x for curve in curves.values() for x, _ in curve], LEFT, WIDTH - KEY)
    up = Axis([y for curve in curves.values() for _, y in curve], HEIGHT - BOTTOM, TOP)
    parts = [text((LEFT + WIDTH - KEY) / 2, 18, title)]
    for tick in across.ticks():
        parts += [line(across.at(tick), TOP, across.at(tick), HEIGHT - BOTTOM, "#dddddd"),
                  text(across.at(tick), HEIGHT - BOTTOM + 16, f"{tick:.3g}")]
    for tick in up.ticks():
        parts += [line(LEFT, up.at(tick), WIDTH - KEY, up.at(tick), "#dddddd"),
                  text(LEFT - 6, up.at(tick) + 4, f"{tick:.3g}", "end")]
    parts += [text((LEFT + WIDTH - KEY) / 2, HEIGHT - 6, "fraction of the elements on a rank"),
              text(LEFT - 6, TOP - 10, "ms", "end")]
    for number, (name, curve) in enumerate(curves.items()):
        colour, width = COLOURS[number % len(COLOURS)], 4 if name == AUTOMATIC else 2
        points = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in sorted(curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" '
                     f'stroke-opacity="{.4 if name == AUTOMATIC else 1}"/>')
        y = TOP + 10 + 18 * number
        parts += [line(WIDTH - KEY + 10, y - 4, WIDTH - KEY + 30, y - 4, colour, width),
                  text(WIDTH - KEY + 36, y, name, "start")]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            f'font-size="12"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def curves_of(lines, link, ranks, elements):
    """Returns {way: [(density, ms)]} of one link and size, without ways that have a single density."""
    curves = {name: [] for name in columns_of(lines)}
    for (its_link, its_ranks, its_elements, density), ways in cells(lines).items():
        if (its_link, its_ranks, its_elements) == (link, ranks, elements):
            for name, measured in ways.items():
                curves[name].append((density, measured["ms"]))
    return {name: curve for name, curve in curves.items() if len(curve) > 1}


def check(page):
    """Raises ValueError if the page has no place for tables."""
    if not page.is_file():
        raise ValueError(f"there is no page {page} (tables are written between its marks): create it")
    for mark in (BEGIN, END):
        if page.read_text().count(mark) != 1:
            raise ValueError(f"{page} must have the line {mark.strip()} exactly once (tables are written between these "
                             "marks): put it where tables belong")


def write(lines, page):
    """Writes tables and links to plots between the marks of the page, and the plots beside it. Shows
    ways_near_best()."""
    named = ways_near_best(lines)
    lines = [found for found in lines if found["way"] in named]
    images = []
    for link in dict.fromkeys(found["link"] for found in lines):
        of_link = [found for found in lines if found["link"] == link]
        ranks = max(found["ranks"] for found in of_link)
        elements = max(found["elements"] for found in of_link if found["ranks"] == ranks)
        if curves := curves_of(of_link, link, ranks, elements):
            title = f"{link}: {elements >> 20} M elements on {ranks} ranks"
            name = f"exchange-{link}.svg"
            page.with_name(name).write_text(plot(title, curves))
            images.append(f"![{title}: milliseconds by density]({name})\n")
    before, rest = page.read_text().split(BEGIN)
    measured = "\n" + "\n".join(images) + "\n" + markdown(lines) + "\n"
    page.write_text(before + BEGIN + measured + END + rest.split(END)[1])
