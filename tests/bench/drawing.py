"""Drawings of the benchmark scripts, made with matplotlib. Like heed's own drawings, they are dark if the reader prefers
dark pages."""
import pathlib
import re

# The colours of text and background in heed's drawings (train/views/draw/svg.cpp).
STYLE = ("<style>:root{color-scheme:light dark;--ink:#1f2328;--back:#fff}"
         "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--back:#0f1216}}text{fill:var(--ink)}</style>")
COLOURS = {"#000000": "var(--ink)", "#ffffff": "var(--back)"}


def pyplot():
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters remain text
    matplotlib.rcParams["svg.hashsalt"] = "heed"  # makes the file reproducible
    from matplotlib import pyplot as plot
    return plot


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    path = pathlib.Path(path)
    path.write_text(in_page_colours(path.read_text()))


def in_page_colours(svg):
    """Replaces matplotlib's black and white by colours that depend on the reader's preference."""
    svg = re.sub("|".join(COLOURS), lambda found: COLOURS[found[0]], svg)
    return svg.replace("<defs>", STYLE + "\n <defs>", 1)
