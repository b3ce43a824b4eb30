"""Pictures as SVG: bars on a logarithmic axis, readable on a light and on a dark page."""

from __future__ import annotations

import math
from html import escape

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.axis { stroke: #8c959f; stroke-width: 1 } .grid { stroke: #8c959f; stroke-opacity: .25 }
.bar { fill: #8c959f } .ours { fill: #1f6feb } .small { font-size: 11px; fill: #57606a }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9da7b1 } .bar { fill: #6e7681 } .ours { fill: #58a6ff } }
""".strip()

LEFT, WIDTH, ROW, TOP = 250, 470, 18, 46


def bars(title: str, unit: str, values: dict[str, tuple[float, float, float]], ours: set[str]) -> str:
    """Name -> median, least, most. The longest bar comes first."""
    ranked = sorted(values.items(), key=lambda pair: -pair[1][0])
    low = math.floor(math.log10(min(least for _, (_, least, _) in ranked)))
    high = max(math.ceil(math.log10(max(most for _, (_, _, most) in ranked))), low + 1)
    height = TOP + ROW * len(ranked) + 12

    def x(value: float) -> float:
        return round(LEFT + WIDTH * (math.log10(value) - low) / (high - low), 1)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 90} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text x="8" y="16" font-weight="600">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        at = x(10**power)
        out.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP - 6}" y2="{height - 8}"/>')
        out.append(f'<text class="small" x="{at}" y="{TOP - 12}" text-anchor="middle">{_power(power)}</text>')
    for row, (name, (median, least, most)) in enumerate(ranked):
        y = TOP + ROW * row
        kind = "ours" if name in ours else "bar"
        out.append(f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{round(x(median) - LEFT, 1)}" height="{ROW - 6}"/>')
        out.append(f'<line class="axis" x1="{x(least)}" x2="{x(most)}" y1="{y + (ROW - 6) / 2}" y2="{y + (ROW - 6) / 2}"/>')
        out.append(f'<text class="small" x="{round(max(x(median), x(most)) + 5, 1)}" y="{y + 10}">{median:,.0f}{escape(unit)}</text>')
    out.append(f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{TOP - 6}" y2="{height - 8}"/></svg>')
    return "\n".join(out) + "\n"


def _power(power: int) -> str:
    names = {0: "1", 1: "10", 2: "100", 3: "1,000", 4: "10,000", 5: "100,000", 6: "1 million", 7: "10 million", 8: "100 million"}
    return names.get(power, f"1e{power}")
