"""Sessions in the form of OpenCode: a database with a row for each message and each part, and the same in one document, an export."""

import json
import sqlite3

from plans import Plan, Truth

SCHEMA = """
CREATE TABLE project (
  id text PRIMARY KEY, worktree text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, sandboxes text NOT NULL);
CREATE TABLE session (
  id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL, directory text NOT NULL, path text,
  title text NOT NULL, version text NOT NULL, share_url text, summary_additions integer, summary_deletions integer, summary_files integer,
  summary_diffs text, metadata text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
  tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
  tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text, time_created integer NOT NULL,
  time_updated integer NOT NULL, time_compacting integer, time_archived integer);
CREATE TABLE message (
  id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (
  id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
"""


class Session:
    agent, refused = "opencode", None

    def __init__(self, seed, parent=None):
        self.plan, self.truth = Plan(f"opencode:{seed}"), Truth()
        self.cwd, self.parent, self.clock = f"/home/user/project-{seed}", parent, 1_772_000_000_000
        self.id, self.messages = self.identifier("ses"), []
        self.title, self.reverted = self.plan.text(4), None
        self.write()
        self.info = {
            "id": self.id, "slug": f"slug-{seed}", "projectID": "global", "directory": self.cwd, "path": "", "title": self.title,
            "version": "1.18.33", "time": {"created": 1_772_000_000_000, "updated": self.clock},
            **({"parentID": parent} if parent else {}), **({"revert": {"messageID": self.reverted}} if self.reverted else {}),
        }

    def now(self):
        self.clock += 1000
        return self.clock

    def identifier(self, kind):
        """An id that is greater than those before it."""
        return f"{kind}_{self.now():012x}{self.plan.random.getrandbits(64):016x}"[:30]

    def message(self, info, parts):
        id, time = self.identifier("msg"), self.now()
        info = {"id": id, "sessionID": self.id, **info, "time": {"created": time, **info.get("time", {})}}
        for part in parts:
            part.update(id=self.identifier("prt"), sessionID=self.id, messageID=id)
            for attached in part.get("state", {}).get("attachments", []):
                attached.update(id=self.identifier("prt"), sessionID=self.id, messageID=id)
        self.messages.append((info, parts))
        return id

    def user(self, parts):
        model = {"providerID": "anthropic", "modelID": "claude-opus-4-8"}
        self.asked = self.message({"role": "user", "agent": "build", "model": model}, parts)
        return self.asked

    def assistant(self, parts, tokens, **more):
        info = {
            "role": "assistant", "parentID": self.asked, "mode": "build", "agent": "build", "path": {"cwd": self.cwd, "root": self.cwd},
            "cost": 0.25, "tokens": tokens, "modelID": "claude-opus-4-8", "providerID": "anthropic", "finish": "stop", **more,
        }
        return self.message({**info, "time": {"completed": self.clock + 60_000}}, parts)

    def write(self):
        plan, mark = self.plan, []
        # The first messages of turns, of which a compaction keeps the later ones.
        firsts = []
        for number in range(plan.random.randint(1, 6)):
            if number and plan.chance(0.2):
                self.compaction(firsts)
            if number and self.reverted is None and plan.chance(0.15):
                mark = self.truth.mark()
                self.reverted = True
            turn = plan.turn()
            parts = [{"type": "text", "text": text} for text in turn.texts]
            if turn.image:
                parts.append(file(turn.image))
            if plan.chance(0.1):
                # A file's text stands beside it.
                turn.texts.append(plan.text())
                parts.append({"type": "text", "synthetic": True, "text": turn.texts[-1]})
                parts.append({"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///a.txt"})
            self.truth.user(turn.texts, turn.image)
            if plan.chance(0.1):
                parts.append({"type": "text", "ignored": True, "text": plan.text()})
                self.truth.interface.append(("user", parts[-1]["text"]))
            first = self.user(parts)
            if self.reverted is True:
                self.reverted = first
            firsts.append(first)
            for nth, answer in enumerate(turn.answers):
                self.answer(answer, nth + 1 == len(turn.answers))
        if self.reverted:
            self.truth.rewind(mark)

    def answer(self, answer, is_last):
        plan, parts = self.plan, [{"type": "step-start", "snapshot": "a"}]
        for kind, block in answer.blocks:
            if kind == "thought":
                parts.append({"type": "reasoning", "text": block, "time": {"start": self.now(), "end": self.now()}})
            elif kind == "text":
                parts.append({"type": "text", "text": block, "time": {"start": self.now(), "end": self.now()}})
            else:
                parts.append(self.tool(block))
        fresh, output, read, write = answer.usage
        tokens = {"total": sum(answer.usage), "input": fresh, "output": output, "reasoning": 0, "cache": {"read": read, "write": write}}
        self.truth.answer(answer)
        for call in answer.calls():
            if call.is_answered:
                self.truth.result(call)
        more = {"finish": "stop" if is_last else "tool-calls"}
        if plan.chance(0.1):
            more = {"error": {"name": plan.random.choice(("MessageAbortedError", "APIError")), "data": {"message": plan.text()}}}
        else:
            parts.append({"type": "step-finish", "reason": more["finish"], "tokens": tokens, "cost": 0.25})
        if plan.chance(0.2):
            parts.append({"type": "patch", "hash": "a", "files": ["/a"]})
        self.assistant(parts, tokens, **more)

    def tool(self, call):
        state = {"status": "completed", "input": call.arguments, "output": call.text, "title": "", "metadata": {}}
        if call.is_error:
            state, call.image = {"status": "error", "input": call.arguments, "error": call.text}, None
        if self.plan.chance(0.1):
            state, call.is_answered = {"status": "running", "input": call.arguments}, False
            return {"type": "tool", "tool": call.name, "callID": call.id, "state": {**state, "time": {"start": self.now()}}}
        if call.image:
            state["attachments"] = [file(call.image)]
        state["time"] = {"start": self.now(), "end": self.now()}
        return {"type": "tool", "tool": call.name, "callID": call.id, "state": state}

    def compaction(self, firsts):
        plan, summary = self.plan, self.plan.text(40)
        tail = {"tail_start_id": firsts[-1]} if plan.chance(0.5) else {}
        self.user([{"type": "compaction", "auto": True, **tail}])
        tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        if plan.chance(0.2):
            error = {"name": "APIError", "data": {"message": plan.text()}}
            self.assistant([], tokens, summary=True, mode="compaction", agent="compaction", error=error)
            return
        self.assistant([{"type": "text", "text": summary}], tokens, summary=True, mode="compaction", agent="compaction")
        self.truth.add(("compaction", summary))

    def export(self):
        return {"info": self.info, "messages": [{"info": info, "parts": parts} for info, parts in self.messages]}


class Exported(Session):
    def __init__(self, seed, home):
        super().__init__(seed)
        self.path = home / f"export-{seed}.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.export(), ensure_ascii=False, indent=2))


def database(file, sessions):
    """A database of these sessions, as OpenCode leaves it when it ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SCHEMA)
    for session in sessions:
        info = session.info
        revert = json.dumps(info["revert"]) if "revert" in info else None
        row = (info["id"], "global", info.get("parentID"), info["slug"], info["directory"], "", info["title"], info["version"], revert)
        times = (info["time"]["created"], info["time"]["updated"])
        connection.execute(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, path, title, version, revert, time_created, time_updated)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, *times),
        )
        for message, parts in session.messages:
            time = message["time"]["created"]
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (message["id"], info["id"], time, time, data(message)))
            for part in parts:
                connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", (part["id"], message["id"], info["id"], time, time, data(part)))
    connection.commit()
    connection.close()
    for session in sessions:
        session.path = f"{file}#{session.id}"


def data(value):
    """A message or a part without what the columns have."""
    return json.dumps({name: field for name, field in value.items() if name not in ("id", "sessionID", "messageID")}, ensure_ascii=False)


def file(image):
    return {"type": "file", "mime": "image/png", "filename": "dot.png", "url": f"data:image/png;base64,{image}"}
