"""The facts of a session, as the crate agent-sessions and the package session-migrate read it, and those that they are to find."""

import json
import subprocess
from collections import Counter
from pathlib import Path

from facts import difference
from plans import AGENT_SESSIONS, SESSION_MIGRATE, canonical
from session_migrate.conversion import load_session
from session_migrate.errors import SessionMigrateError
from session_migrate.model import AgentFormat, EventKind

FORMATS = {"claude_code": AgentFormat.CLAUDE, "codex": AgentFormat.CODEX, "pi": AgentFormat.PI, "opencode": AgentFormat.OPENCODE}
# The role that agent-sessions gives to a summary.
SUMMARY = {"claude_code": "user", "gemini_cli": "user", "opencode": "assistant"}


class Unread(Exception):
    """A reader refuses a session."""


class AgentSessions:
    """A process that reads one session after another. It knows no branches: it reads all lines of a file."""

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
            raise Unread(answer["error"])
        records, usage, facts = set(), {}, []
        for fact in answer["facts"]:
            match fact["is"]:
                case "message" if fact["role"] != "System":
                    facts.append((fact["role"].lower(), fact["text"]))
                # System messages are those of the interface, but in pi's form.
                case "message" if agent == "pi":
                    facts.append(("compaction", fact["text"]))
                case "call":
                    facts.append(("call", fact["id"], fact["name"], arguments(fact["arguments"])))
                case "result":
                    # The form of Codex does not say whether a call failed, and that of Claude Code may leave it out.
                    facts.append(("result", fact["id"], fact["text"] or said(fact["output"]), bool(fact["isError"])))
                case "usage" if fact["record"] is None or fact["record"] not in records:
                    # The lines of one answer have one key; the counts of the last one hold.
                    records.add(fact["record"])
                    usage[fact["key"] or len(usage)] = counts(agent, fact["counts"])
        # A resumed session repeats lines, and each text of a session is the only one of its kind.
        return [*dict.fromkeys(facts), *[("usage", *it) for it in usage.values() if any(it)]]


def arguments(value):
    """Arguments as a text. Codex has them as JSON in a string; those of a custom tool are one text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = {"input": value}
    return canonical(value)


def said(output):
    """The text of a result in Gemini's form, which agent-sessions leaves as it is."""
    parts = output if isinstance(output, list) else []
    responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    return "\n".join(response.get("output") or response.get("error") or "" for response in responses)


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
    """The path that session-migrate takes, without usage."""
    try:
        events = load_session(Path(path), FORMATS[agent]).events
    except SessionMigrateError as error:
        raise Unread(str(error)) from error
    facts = []
    for event in events:
        match event.kind:
            # A text that only the interface shows: the items have it in parts.
            case EventKind.MESSAGE if not event.payload.get("ui_only_projection"):
                role = event.role.value
                facts.append(("developer" if role == "system" else role, event.text or ""))
            case EventKind.TOOL_CALL:
                facts.append(("call", event.tool_call_id, event.tool_name, arguments(event.payload.get("input"))))
            case EventKind.TOOL_RESULT:
                facts.append(("result", event.tool_call_id, event.text or "", event.payload.get("is_error") is True))
            case EventKind.COMPACTION:
                facts.append(("compaction", event.text or ""))
    return facts


def comparable(facts, **roles):
    """Facts without those that no other reader has, and with texts by their lines: readers join the blocks of a message."""
    for fact in facts:
        match fact:
            case ("thought" | "image", *_):
                pass
            case (role, text):
                yield from ((roles.get(role, role), line) for line in text.split("\n") if line)
            case _:
                yield fact


def agent_sessions_differs(reader, session):
    """The difference between the truth of the whole file and what agent-sessions finds there, if there is one."""
    truth, roles = session.truth, {"note": "user", "compaction": SUMMARY.get(session.agent)}
    try:
        found = Counter(comparable(reader.facts(session.agent, session.path)))
    except Unread as error:
        return str(error)
    least = most = truth.seen(AGENT_SESSIONS, truth.all) + truth.interface
    if session.agent == "gemini_cli":
        # A rewind is applied, though the message at which it begins stays.
        least, most = truth.seen(AGENT_SESSIONS, truth.path), truth.all + truth.interface
    lost = Counter(comparable(least, **roles)) - found
    more = found - Counter(comparable(most, **roles))
    return f"not found: {[*lost][:2]}, too much: {[*more][:2]}" if lost or more else None


def session_migrate_differs(session):
    """The difference between the truth of the path that session-migrate takes and what it finds, if there is one."""
    truth = session.truth
    try:
        found = list(comparable(session_migrate(session.agent, session.path)))
    except Unread as error:
        return None if session.refused and session.refused in str(error) else str(error)
    if session.refused:
        return f"read, in spite of: {session.refused}"
    # Rollbacks and reverts are not applied.
    path = truth.all
    if session.agent == "claude_code":
        path = truth.path if session.named is None else session.named
    path = [fact for fact in comparable(truth.seen(SESSION_MIGRATE, path)) if fact[0] != "usage"]
    if session.agent == "opencode":
        found, path = results_last(found), results_last(path)
    return None if found == path else difference(found, path)


def results_last(facts):
    """Facts in an order that does not depend on where results and their images stand."""
    is_last = lambda fact: fact[0] in ("result", "image")
    return sorted(facts, key=lambda fact: (is_last(fact), fact[1] if is_last(fact) else ""))
