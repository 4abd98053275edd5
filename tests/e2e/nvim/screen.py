"""A terminal's screen as cells with their colours, and as a picture.

    screen.py IN.ansi OUT.svg     # IN is what `tmux capture-pane -p -e` prints
"""

import html
import re
import sys
import unicodedata
from dataclasses import dataclass, replace

CELL, LINE, SIZE, PAD = 8.4, 19, 14, 10
# (foreground, background) of a terminal without colours set.
GROUND = {"dark": ("#dcdfe4", "#1f2329"), "light": ("#24292f", "#ffffff")}
ANSI = ["#1f2329", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf"]
BRIGHT = ["#5c6370", "#ff7b86", "#b5e890", "#ffd58a", "#82c4ff", "#e193f5", "#6fd3e0", "#ffffff"]


@dataclass(frozen=True)
class Style:
    fg: str | None = None
    bg: str | None = None
    bold: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


def indexed(n):
    if n < 16:
        return (ANSI + BRIGHT)[n]
    if n >= 232:
        return "#" + 3 * f"{8 + 10 * (n - 232):02x}"
    steps = [0, 95, 135, 175, 215, 255]
    n -= 16
    return "#" + "".join(f"{steps[n // power % 6]:02x}" for power in (36, 6, 1))


def colour(codes):
    """Returns the colour that follows 38, 48 or 58, which is taken from CODES."""
    kind = codes.pop(0)
    if kind == 5:
        return indexed(codes.pop(0))
    return "#" + "".join(f"{codes.pop(0):02x}" for _ in range(3))


def styled(style, parameters):
    codes = []
    for part in parameters.split(";"):
        numbers = [int(n) for n in part.split(":") if n]
        # `4:3` is a kind of underline; `38:2::r:g:b` has its colour in one part.
        codes += [4 if numbers[1] else 24] if numbers[:1] == [4] and len(numbers) > 1 else numbers or [0]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = Style()
        elif code in (1, 22):
            style = replace(style, bold=code == 1)
        elif code in (3, 23):
            style = replace(style, italic=code == 3)
        elif code in (4, 24):
            style = replace(style, underline=code == 4)
        elif code in (7, 27):
            style = replace(style, reverse=code == 7)
        elif code in (38, 48, 58):
            value = colour(codes)
            style = replace(style, fg=value) if code == 38 else replace(style, bg=value) if code == 48 else style
        elif code == 39:
            style = replace(style, fg=None)
        elif code == 49:
            style = replace(style, bg=None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = replace(style, fg=indexed(code - 30 if code < 90 else code - 82))
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = replace(style, bg=indexed(code - 40 if code < 100 else code - 92))
    return style


def wide(character):
    return 2 if unicodedata.east_asian_width(character) in "WF" else 0 if unicodedata.combining(character) else 1


def cells(ansi):
    """Returns the rows of a screen, each a list of (character, Style)."""
    rows, style = [], Style()
    for line in ansi.split("\n"):
        row = []
        for part in re.split(r"(\x1b\[[0-9;:]*m|\x1b[()][0-9A-B]|[\x0e\x0f])", line):
            if match := re.fullmatch(r"\x1b\[([0-9;:]*)m", part):
                style = styled(style, match[1])
            elif not part.startswith("\x1b"):
                row += [(character, style) for character in part if character >= " "]
        rows.append(row)
    return rows


def runs(row):
    """Returns (column, width in cells, text, style) of the runs of ROW that have the same style."""
    column, result = 0, []
    for character, style in row:
        width = wide(character)
        if result and result[-1][3] == style:
            at, wide_so_far, text, _ = result[-1]
            result[-1] = (at, wide_so_far + width, text + character, style)
        else:
            result.append((column, width, character, style))
        column += width
    return result


def marked(ansi):
    """Returns (row, text) of each underlined run, in order."""
    return [(number, text) for number, row in enumerate(cells(ansi)) for _, _, text, style in runs(row) if style.underline and text.strip()]


def svg(ansi, columns, rows, ground="dark", title="Neovim"):
    """Returns the screen as an SVG picture, in which text stays text."""
    fg, bg = GROUND[ground]
    width, height = 2 * PAD + columns * CELL, 2 * PAD + rows * LINE
    back, text = [], []
    for number, row in enumerate(cells(ansi)[:rows]):
        y = PAD + number * LINE
        spans = []
        for column, span, run, style in runs(row):
            ink, paper = style.fg or fg, style.bg
            if style.reverse:
                ink, paper = paper or bg, ink
            x = PAD + column * CELL
            if paper:
                back.append(f'<rect x="{x:.1f}" y="{y}" width="{span * CELL + 0.3:.1f}" height="{LINE}" fill="{paper}"/>')
            if style.underline:
                back.append(f'<path d="M{x:.1f} {y + LINE - 2.5}h{span * CELL:.1f}" stroke="#e06c75" stroke-width="1.5" stroke-dasharray="3 1.5"/>')
            if run.strip():
                # `textLength` keeps each run at the width of its cells.
                more = ' font-weight="bold"' if style.bold else ""
                more += ' font-style="italic"' if style.italic else ""
                spans.append(f'<tspan x="{x:.1f}" fill="{ink}" textLength="{span * CELL:.1f}" lengthAdjust="spacingAndGlyphs"{more}>{html.escape(run)}</tspan>')
        if spans:
            text.append(f'<text y="{y + 14}" xml:space="preserve">{"".join(spans)}</text>')
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img" aria-label="{html.escape(title)}">
<style>text{{font:{SIZE}px 'DejaVu Sans Mono',ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}}</style>
<rect width="100%" height="100%" rx="6" fill="{bg}"/>
{chr(10).join(back)}
{chr(10).join(text)}
</svg>
"""


if __name__ == "__main__":
    with open(sys.argv[1]) as source, open(sys.argv[2], "w") as out:
        ground = sys.argv[3] if len(sys.argv) > 3 else "dark"
        shown = source.read().rstrip("\n")
        out.write(svg(shown, max((sum(wide(c) for c, _ in row) for row in cells(shown)), default=80), shown.count("\n") + 1, ground))
