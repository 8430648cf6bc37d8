"""Draws the terminal of `abridged demo`, in 80 columns and 30 rows, as an SVG.

Usage: python3 docs/demo.py [ABRIDGED] > docs/demo.svg
"""
import fcntl, os, pty, re, struct, sys, tempfile, termios
from xml.sax.saxutils import escape

COLUMNS, ROWS, WIDTH, HEIGHT = 80, 30, 8.4, 18
CLASSES = {"1": "bold", "31": "red", "32": "green", "33": "yellow"}
STYLE = """
  svg { --back: #ffffff; --edge: #d0d7de; --text: #1f2328; --free: #dde3e9 }
  svg { --red: #b3261e; --green: #116329; --yellow: #7d4e00 }
  @media (prefers-color-scheme: dark) {
    svg { --back: #0d1117; --edge: #30363d; --text: #e6edf3; --free: #2b323b }
    svg { --red: #ff8f87; --green: #56d364; --yellow: #e3b341 }
  }
  text { font: 14px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--text) }
  .bold { font-weight: bold } .dim { opacity: .65 } .free { fill: var(--free) } .mark { fill: var(--text) }
  .red { fill: var(--red) } .green { fill: var(--green) } .yellow { fill: var(--yellow) }
"""

def output(program):
    """Runs the demo on a terminal of its own and returns its output."""
    with tempfile.TemporaryDirectory() as home:
        child, terminal = pty.fork()
        if child == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.environ.update(TERM="xterm-256color", ABRIDGED_DATA_DIR=f"{home}/data", ABRIDGED_CONFIG_DIR=f"{home}/config")
            os.environ.pop("NO_COLOR", None)
            os.execvp(program, [program, "demo"])
        text = b""
        try:
            while more := os.read(terminal, 65536):
                text += more
        except OSError:  # the end of a terminal
            pass
        os.waitpid(child, 0)
    return text.decode()

def screen(text):
    """The lines of a screen: cells of a character and its class."""
    lines, column, style = [[]], 0, ""
    for code, char in re.findall(r"\x1b\[([0-9;]*)m|(.)", text, re.DOTALL):
        if not char:
            style = CLASSES.get(code, "")
        elif char == "\n":
            lines.append([])
        elif char == "\r":
            column = 0
            continue
        else:
            line = lines[-1]
            line[column:column + 1] = [(char, style)]
            column += 1
    return lines[:-1] if not lines[-1] else lines

def runs(line):
    """The runs of cells of one kind: the column, the text and the class."""
    found = []
    for column, (char, style) in enumerate(line):
        char = " " if char in "▕▏" else char  # the ends of a bar, which is drawn without them
        kind = "free" if char == "░" else "mark" if char == "│" else style
        kind += " bar" if char in "█░│" and style else ""
        start, text, last = found[-1] if found else (0, "", None)
        if last == kind and start + len(text) == column and not (char == " " == text[-1]):
            found[-1] = (start, text + char, kind)
        elif char != " ":
            found.append((column, char, kind))
    return [(start, text.rstrip(), kind) for start, text, kind in found]

def svg(lines):
    width, height = COLUMNS * WIDTH + 40, (len(lines) + 1) * HEIGHT + 40
    plain = "\n".join("".join(char for char, _ in line).rstrip() for line in lines)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="title">'
    yield '<title id="title">A terminal with the output of abridged demo</title>'
    yield f"<desc>{escape(plain)}\n</desc>"
    yield f"<style>{STYLE}</style>"
    yield (f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8" style="fill: var(--back); '
           'stroke: var(--edge)"/>')
    prompt = [("$ abridged demo"[at], "dim") for at in range(15)]
    for row, line in enumerate([prompt, *lines]):
        top = 20 + row * HEIGHT
        for column, text, kind in runs(line):
            x, size = 20 + column * WIDTH, len(text) * WIDTH
            if kind.endswith(" bar"):
                kind, thin = kind[:-4], text == "│"
                shape = (x + 3, top - 1, 2, HEIGHT) if thin else (x, top + 2, size, HEIGHT - 6)
                yield '<rect class="{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>'.format(kind, *shape)
            else:
                name = f' class="{kind}"' if kind else ""
                yield f'<text{name} x="{x:.1f}" y="{top + 13}" textLength="{size:.1f}">{escape(text)}</text>'
    yield "</svg>"

program = sys.argv[1] if len(sys.argv) > 1 else "abridged"
print("\n".join(svg(screen(output(program)))))
