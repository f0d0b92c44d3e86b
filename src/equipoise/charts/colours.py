"""Hold the colours of pages and charts in one table, for the light and for the dark: style sheets and charts read it.

Charts are drawn in their light colours; on a dark page the style sheet exchanges them. So a chart is the same on
screen, on paper and in a file. The series have the colours of Okabe and Ito, distinguishable with the common kinds of
colour blindness.
"""

from __future__ import annotations

TOKENS: dict[str, tuple[str, str]] = {
    "back": ("#ffffff", "#14181d"),
    "panel": ("#f6f8fa", "#1d232a"),
    "raised": ("#ffffff", "#232a32"),
    "ink": ("#1b1f24", "#e8ebee"),
    "soft": ("#57606a", "#a9b2bc"),
    "line": ("#d5dae0", "#343b44"),
    "edge": ("#7d8590", "#7f8a96"),
    "link": ("#0b5394", "#7cc4f5"),
    "pick": ("#e8f3fb", "#16324a"),
    "act": ("#0b5394", "#2873b1"),
    "on-act": ("#ffffff", "#ffffff"),
    "good": ("#0b6b3a", "#5fd39a"),
    "warn": ("#8a4b00", "#f0b35e"),
    "bad": ("#a4260b", "#ff9a85"),
    "bad-back": ("#fdf0ed", "#3a1d17"),
    "warn-back": ("#fdf5e6", "#33270f"),
    "gain": ("#0072B2", "#4fb0ea"),
    "cost": ("#b34a00", "#ff8f4d"),
}
"""The colours of pages by their use; text on `back`, `panel` and `raised` has a contrast of at least 4.5."""

IN_CHARTS: dict[str, tuple[str, str]] = {
    "blue": ("#0072B2", "#4fb0ea"),
    "vermilion": ("#D55E00", "#ff8f4d"),
    "green": ("#009E73", "#2cc79a"),
    "purple": ("#CC79A7", "#e89fc6"),
    "orange": ("#E69F00", "#E69F00"),
    "sky": ("#56B4E9", "#56B4E9"),
    "yellow": ("#F0E442", "#d8cc3a"),
    "black": ("#000000", "#e8ebee"),
    "grey": ("#6B6B6B", "#a9b2bc"),
    "pale": ("#8C8C8C", "#8b949e"),
    "grid": ("#E6E6E6", "#2c333b"),
    "axis": ("#888888", "#8b949e"),
    "tick": ("#dddddd", "#343b44"),
    "white": ("#ffffff", "#14181d"),
}
"""The colours of charts."""

SERIES = tuple(IN_CHARTS[name][0] for name in ("blue", "vermilion", "green", "purple", "orange", "sky", "black"))
"""The colours of series, in turn; tell series apart by dashes or shapes too."""

_SPELT = {"#000000": ("#000", "black"), "#888888": ("#888",), "#dddddd": ("#ddd",), "#ffffff": ("#fff", "white")}
"""Other spellings that Vega and its defaults use."""


def style_sheet() -> str:
    """Return the colours as CSS variables, for both themes, and the rules that exchange those of charts in the dark.

    The `data-theme` of a page's root is system, light or dark; paper is always light.

    Examples
    --------
    >>> "--ink: #1b1f24;" in style_sheet(), '[fill="#0072b2" i]' in style_sheet()
    (True, True)
    """
    named = TOKENS | {f"in-{name}": pair for name, pair in IN_CHARTS.items()}
    light, dark = ("".join(f"--{name}: {pair[k]}; " for name, pair in named.items()) for k in (0, 1))
    rules = [
        f":root {{ color-scheme: light; {light}}}",
        f"@media screen {{ :root[data-theme=dark] {{ color-scheme: dark; {dark}}} }}",
        "@media screen and (prefers-color-scheme: dark) "
        f"{{ :root[data-theme=system] {{ color-scheme: dark; {dark}}} }}",
    ]
    for name, (in_light, in_dark) in IN_CHARTS.items():
        if in_light != in_dark:
            for attribute in ("fill", "stroke"):
                spelt = (in_light.lower(), *_SPELT.get(in_light, ()))
                chosen = ", ".join(f'.chart svg [{attribute}="{one}" i]' for one in spelt)
                rules.append(f"{chosen} {{ {attribute}: var(--in-{name}); }}")
    return "\n".join(rules) + "\n"
