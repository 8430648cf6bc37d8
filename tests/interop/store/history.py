"""The appends of a session as its clients saw them, and the judgement of the rows that a store has."""

import json

from daemon import text_of
from world import expect


class History:
    """The appends of one session by one client at a time. A text is sent once, whatever happens to it."""

    def __init__(self, session):
        self.session = session
        self.sent, self.answered, self.refused = [], {}, set()

    def next(self):
        """The text of the next append."""
        self.sent.append(f"{self.session} {len(self.sent)}")
        return self.sent[-1]

    def answer(self, text, ids):
        """An append was answered."""
        (self.answered[text],) = ids

    def refuse(self, text):
        """An append was refused."""
        self.refused.add(text)

    @property
    def unknown(self):
        """The appends that had no answer."""
        return [text for text in self.sent if text not in self.answered and text not in self.refused]

    def check(self, file, refused_may_stay=False):
        """Judges the bytes of the session. Returns how many appends without an answer are there."""
        entries = lines_of(file)
        stored = [entry for entry in entries if entry["type"] == "message"]
        texts = [text_of(entry["message"]) for entry in stored]
        expect(len(set(texts)) == len(texts), f"{self.session}: an append is there twice: {doubled(texts)}")
        missing = [text for text in self.answered if text not in texts]
        expect(not missing, f"{self.session}: {len(missing)} answered appends are lost: {missing[:5]}")
        order = {text: number for number, text in enumerate(self.sent)}
        numbers = [order[text] for text in texts]
        expect(numbers == sorted(numbers), f"{self.session}: the appends are in another order")
        stayed = [text for text in texts if text in self.refused]
        expect(refused_may_stay or not stayed, f"{self.session}: {len(stayed)} refused appends are there: {stayed[:5]}")
        for entry, text in zip(stored, texts):
            expect(self.answered.get(text, entry["id"]) == entry["id"], f"{self.session}: {text} has another id than its answer says")
        return sum(text not in self.answered for text in texts)


def doubled(texts):
    """Texts that are there more than once."""
    return sorted({text for text in texts if texts.count(text) > 1})[:5]


def lines_of(file):
    """The entries of a session file, which must be whole lines of JSON that chain by their parents."""
    expect(file.endswith(b"\n"), f"the last line is torn: {file[-80:]!r}")
    header, *entries = map(json.loads, file.splitlines())
    expect(header["type"] == "session", f"the first line is no header: {header}")
    ids = [entry["id"] for entry in entries]
    expect(len(set(ids)) == len(ids), f"ids are there twice: {doubled(ids)}")
    before = None
    for entry in entries:
        expect(entry["parentId"] == before, f"{entry['id']} follows {entry['parentId']} and stands after {before}")
        before = entry["id"]
    return entries


def check_rows(server, session, schema="abridged"):
    """Judges the rows of a session: their numbers have no gap, and the facts beside them hold. Returns its bytes."""
    file = server.file(session, schema)
    ((lines, size, whole, entries, numbered, first, last),) = server.sql(f"""
        SELECT s.lines, s.bytes, s.whole, s.entries, count(l.number), min(l.number), max(l.number)
        FROM "{schema}".session s JOIN "{schema}".line l ON l.session = s.id WHERE s.id = '{session}' GROUP BY s.id""")
    count = file.count(b"\n")
    expect([lines, size, whole] == [str(count), str(len(file)), "t"], f"the row says {lines} lines, {size} bytes; there are {count}, {len(file)}")
    expect([numbered, first, last] == [lines, "0", str(count - 1)], f"{numbered} rows from {first} to {last} for {lines} lines")
    expect(entries == str(count - 1), f"the row says {entries} entries; there are {count - 1}")
    return file


def check_opened(daemon, history, file):
    """A daemon that opens the session shows the entries of its rows, and its cache has their bytes."""
    opened = daemon.load(history.session)
    shown = [entry["id"] for entry in daemon.entries(history.session)]
    expect(shown == [entry["id"] for entry in lines_of(file)], f"{history.session}: a daemon shows other entries than its rows are")
    with open(opened["path"], "rb") as cached:
        expect(cached.read() == file, f"{history.session}: the cache has other bytes than the store")
    daemon.close_session(history.session)
