"""The facts of a session, as the crate agent-sessions and the package session-migrate read it."""

import json
import subprocess
from pathlib import Path

from plans import canonical
from session_migrate.conversion import load_session
from session_migrate.model import AgentFormat, EventKind

FORMATS = {"claude_code": AgentFormat.CLAUDE, "codex": AgentFormat.CODEX, "pi": AgentFormat.PI, "opencode": AgentFormat.OPENCODE}


def arguments(value):
    """Arguments as a text. Codex has them as JSON in a string; those of a custom tool are one text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = {"input": value}
    return canonical(value)


class AgentSessions:
    """A process that reads one session after another. It reads all lines of a file: it knows no branches."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)

    def facts(self, agent, path):
        file, _, session = str(path).partition("#")
        fields = [agent.replace("_", "-"), file, *([session] if session else [])]
        self.process.stdin.write("\t".join(fields) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise ValueError(f"agent-sessions: {path}: {answer['error']}")
        usage, facts = {}, []
        for fact in answer["facts"]:
            match fact["is"]:
                # System messages are those of the interface.
                case "message" if fact["role"] != "System" and fact["text"]:
                    facts.append((fact["role"].lower(), fact["text"]))
                case "call":
                    facts.append(("call", fact["id"], fact["name"], arguments(fact["arguments"])))
                case "result":
                    facts.append(("result", fact["id"], fact["text"] or "", fact["isError"]))
                case "usage":
                    # The lines of one answer have one key; the counts of the last one hold.
                    usage[fact["key"] or len(usage)] = counts(agent, fact["counts"])
        # Lines that a resumed session repeats.
        return list(dict.fromkeys(facts)) + [("usage", *it) for it in usage.values() if any(it)]


def counts(agent, counts):
    """Input without what is cached, output, what was read from the cache, and what was written to it."""
    number = lambda name: counts.get(name) or 0
    fresh, read, write = number("input"), number("cache_read"), number("cache_write")
    if agent == "codex":
        fresh -= read + write
    elif agent == "gemini_cli":
        fresh -= read
    return fresh, number("output"), read, write


def session_migrate(agent, path):
    """The active path, without usage."""
    facts = []
    for event in load_session(Path(path), FORMATS[agent]).events:
        match event.kind:
            # A text that only the interface shows: the items have it in parts.
            case EventKind.MESSAGE if event.text and not event.payload.get("ui_only_projection"):
                facts.append((event.role.value, event.text))
            case EventKind.TOOL_CALL:
                facts.append(("call", event.tool_call_id, event.tool_name, arguments(event.payload.get("input"))))
            case EventKind.TOOL_RESULT:
                facts.append(("result", event.tool_call_id, event.text or "", event.payload.get("is_error") is True))
            case EventKind.COMPACTION:
                facts.append(("compaction", event.text))
    return facts
