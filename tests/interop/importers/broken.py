"""Files that no agent writes: sessions with wrong types, repeated and lost lines, cuts, and bytes that are no text."""

import json
import random

import claude_code
import codex
import gemini_cli
import opencode

VALUES = (None, True, 0, -1, 1 << 70, 1.5, 1e308, "", "x", "\0", "\ud800", [], {}, [[]], [{}], {"a": {}}, [None], {"type": "text"}, "2026-13-45")


def write(seed, home):
    """Writes a broken session. Returns its path."""
    luck = random.Random(seed)
    make = luck.choice((claude_code.Session, codex.Session, gemini_cli.Session, opencode.Exported))
    path = make(f"broken-{seed}", home).path
    whole = path.read_bytes()
    path.write_bytes(document(luck, whole) if path.suffix == ".json" else lines(luck, whole))
    return path


def document(luck, whole):
    value = json.loads(whole)
    for _ in range(luck.randint(1, 5)):
        value = wrong(luck, value)
    return json.dumps(value).encode()


def wrong(luck, value, depth=0):
    """The value with another one in some place."""
    if not isinstance(value, (dict, list)) or not value or depth and luck.random() < 0.15:
        return luck.choice(VALUES)
    copy = value.copy()
    at = luck.choice(list(value)) if isinstance(value, dict) else luck.randrange(len(value))
    match luck.random():
        case share if share < 0.1:
            del copy[at]
        case share if share < 0.2 and isinstance(copy, list):
            copy.append(copy[at])
        case _:
            copy[at] = wrong(luck, copy[at], depth + 1)
    return copy


def lines(luck, whole):
    lines = whole.splitlines(keepends=True)
    for _ in range(luck.randint(1, 6)):
        at = luck.randrange(len(lines))
        luck.choice((mistyped, mistyped, mistyped, cut, repeated, shuffled, garbled, zeroed))(luck, lines, at)
    return b"".join(lines)


def mistyped(luck, lines, at):
    try:
        lines[at] = json.dumps(wrong(luck, json.loads(lines[at]))).encode() + b"\n"
    except ValueError:
        cut(luck, lines, at)


def cut(luck, lines, at):
    lines[at] = lines[at][: luck.randint(0, len(lines[at]))]


def repeated(luck, lines, at):
    lines.insert(luck.randrange(len(lines)), lines[at])


def shuffled(luck, lines, _):
    luck.shuffle(lines)


def garbled(luck, lines, at):
    bytes = bytearray(lines[at] or b"{}")
    for _ in range(3):
        bytes[luck.randrange(len(bytes))] = luck.randrange(256)
    lines[at] = b"\xff\xfe" * luck.randint(0, 1) + bytes


def zeroed(luck, lines, at):
    lines[at] = b"\0" * luck.randint(1, 100) + lines[at]
