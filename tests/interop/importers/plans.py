"""Conversations that a seed makes: the turns that the writers of the agents' forms put into files, with texts that occur once."""

import base64
import itertools
import json
import random
import struct
import zlib
from dataclasses import dataclass, field

WORDS = (
    "anchor basin copper delta ember fjord garnet harbor inlet jasper kelp lagoon marsh nickel onyx pewter quartz reef shoal tidal umber "
    "vellum willow xenon yarrow zinc Übergröße naïve 東京 данные 🦀 \u2028 \\n \" ' </tag> %s {} \t"
).split(" ")
TOOLS = ("read_file", "Bash", "exec_command", "grep")
AGENT_SESSIONS, SESSION_MIGRATE = READERS = ("agent-sessions", "session-migrate")


def png(random):
    """An image of one pixel."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixel = zlib.compress(b"\0" + random.randbytes(3))
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


@dataclass
class Call:
    id: str
    name: str
    arguments: dict
    text: str
    is_error: bool
    image: str | None
    is_answered: bool = True


@dataclass
class Answer:
    """One answer of the model: blocks in their order, a text, a thought or a call."""

    blocks: list
    usage: tuple
    stop: str = "end_turn"

    def calls(self):
        return [block for kind, block in self.blocks if kind == "call"]


@dataclass
class Turn:
    """A message of the user and the answers to it."""

    texts: list
    image: str | None
    answers: list = field(default_factory=list)


class Plan:
    """The texts, calls and counts of one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = itertools.count(1)

    def chance(self, share):
        return self.random.random() < share

    def text(self, most=12):
        """A text that no other is equal to."""
        words = [self.random.choice(WORDS) for _ in range(self.random.randint(1, most))]
        joint = "\n" if self.chance(0.1) else " "
        return f"T{next(self.numbers)} {joint.join(words)}".strip()

    def image(self, share):
        return png(self.random) if self.chance(share) else None

    def uuid(self):
        bits = f"{self.random.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

    def uuid7(self):
        bits = f"{self.random.getrandbits(80):020x}"
        return f"0199{next(self.numbers):04x}-0000-7{bits[:3]}-8{bits[3:6]}-{bits[6:18]}"

    def value(self, depth=2):
        kinds = [self.text, lambda: self.random.randint(-5, 1 << 40), lambda: None, lambda: True, lambda: 0.5]
        if depth:
            kinds += [lambda: [self.value(depth - 1) for _ in range(2)], lambda: {"k": self.value(depth - 1), "": "empty"}]
        return self.random.choice(kinds)()

    def call(self):
        number = next(self.numbers)
        arguments = {f"a{i}": self.value() for i in range(self.random.randint(0, 3))}
        is_error = self.chance(0.25)
        text = "" if self.chance(0.05) else self.text(30)
        return Call(f"call_{number:05}", self.random.choice(TOOLS), arguments, text, is_error, self.image(0.15))

    def answer(self, is_last):
        blocks = []
        if self.chance(0.4):
            blocks.append(("thought", self.text()))
        if is_last or self.chance(0.5):
            blocks.append(("text", self.text(25)))
        if not is_last:
            blocks += [("call", self.call()) for _ in range(self.random.choice((1, 1, 2, 3)))]
        counts = self.random.randint
        usage = (counts(1, 9000), counts(1, 900), counts(0, 90_000), counts(0, 500))
        return Answer(blocks, usage, "end_turn" if is_last else "tool_use")

    def turn(self):
        texts = [self.text() for _ in range(self.random.choice((1, 1, 1, 2)))]
        turn = Turn(texts, self.image(0.2))
        steps = self.random.randint(0, 3)
        turn.answers = [self.answer(step == steps) for step in range(steps + 1)]
        return turn


class Truth:
    """The facts that a session has. A fact is a tuple of its kind and its content."""

    def __init__(self):
        # Those of the active path, and those of all branches.
        self.path, self.all = [], []
        # Facts that stand in a form which one of the other readers does not read, by its name.
        self.hidden = {reader: set() for reader in READERS}
        # Texts of the interface, which agent-sessions reads as if they were the conversation's.
        self.interface = []

    def add(self, *facts):
        self.all += facts
        self.path += facts

    def hide(self, reader, *facts):
        self.hidden[reader].update(facts)

    def seen(self, reader, facts):
        return [fact for fact in facts if fact not in self.hidden[reader]]

    def mark(self):
        return list(self.path)

    def rewind(self, mark):
        """The path that was marked is active again, and the facts after it are a branch."""
        self.path = list(mark)

    def user(self, texts, image=None):
        self.add(*[("user", text) for text in texts], *([("image", image)] if image else []))

    def answer(self, answer, thoughts=True, usage=True):
        for kind, block in answer.blocks:
            if kind == "thought" and thoughts:
                self.add(("thought", block))
            elif kind == "text":
                self.add(("assistant", block))
            elif kind == "call":
                self.add(("call", block.id, block.name, canonical(block.arguments)))
        if usage:
            self.add(("usage", *answer.usage))

    def result(self, call, has_error=True):
        image = [("image", call.image)] if call.image else []
        self.add(result(call, has_error), *image)


def result(call, has_error=True):
    return "result", call.id, call.text, call.is_error and has_error


def canonical(value):
    """A value as a text that does not depend on the order of its keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
