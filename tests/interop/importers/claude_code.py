"""Sessions in the form of Claude Code: a line for each block of an answer, a tree by `uuid` and `parentUuid`."""

import json

from plans import AGENT_SESSIONS, SESSION_MIGRATE, Plan, Truth, result

VERSION = "2.1.197"


class Session:
    agent = "claude_code"

    def __init__(self, seed, folder):
        self.plan, self.truth = Plan(f"claude:{seed}"), Truth()
        self.id, self.cwd = self.plan.uuid(), f"/home/user/project-{seed}"
        self.lines, self.leaf, self.clock = [], None, 0
        self.is_old = self.plan.chance(0.3)
        # The places to which a rewind may go: a line and a mark of the truth.
        self.places = [(None, [])]
        # The path of the leaf that the file names last: session-migrate takes it even if the session went on.
        self.named = None
        # The reason for which session-migrate refuses the file.
        self.refused = None
        self.title = self.write()
        name = self.cwd.replace("/", "-")
        self.path = folder / "projects" / name / f"{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        end = self.plan.random.choice(("\n", "\n", "\n", "\r\n"))
        self.path.write_bytes("".join(json.dumps(line, ensure_ascii=False) + end for line in self.lines).encode())

    def time(self):
        self.clock += 1
        return f"2026-03-01T{10 + self.clock // 3600:02}:{self.clock // 60 % 60:02}:{self.clock % 60:02}.{self.clock % 1000:03}Z"

    def line(self, kind, parent, **fields):
        """A line of the tree."""
        line = {
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": self.cwd, "sessionId": self.id,
            "version": VERSION, "gitBranch": "main", "type": kind, **fields, "uuid": self.plan.uuid(), "timestamp": self.time(),
        }
        self.lines.append(line)
        return line["uuid"]

    def beside(self, kind, **fields):
        self.lines.append({"type": kind, **fields, "sessionId": self.id})

    def say(self, content, **fields):
        self.leaf = self.line("user", self.leaf, message={"role": "user", "content": content}, **fields)

    def write(self):
        plan = self.plan
        if plan.chance(0.3):
            # Sometimes so many that a short look at the file finds nothing else.
            snapshot = {"type": "file-history-snapshot", "messageId": plan.uuid(), "snapshot": {}, "isSnapshotUpdate": False}
            self.lines += [snapshot] * plan.random.choice((1, 30))
        if not self.is_old:
            self.beside("queue-operation", operation="enqueue", timestamp=self.time(), content="x")
        for number in range(plan.random.randint(1, 7)):
            if number and plan.chance(0.2):
                self.leaf, mark = plan.random.choice(self.places)
                self.truth.rewind(mark)
            elif number and plan.chance(0.2):
                self.compaction()
            self.around()
            self.places.append((self.leaf, self.truth.mark()))
            turn = plan.turn()
            self.truth.user(turn.texts, turn.image)
            blocks = [{"type": "text", "text": text} for text in turn.texts]
            if turn.image:
                blocks.append(image(turn.image))
            self.say(blocks[0]["text"] if len(blocks) == 1 and plan.chance(0.7) else blocks, promptId=plan.uuid())
            for answer in turn.answers:
                self.answer(answer)
            if plan.chance(0.15):
                self.api_error()
        if plan.chance(0.2):
            # A session that is resumed in an earlier version repeats its lines.
            at = plan.random.randrange(len(self.lines))
            repeated = [line for line in self.lines[: at + 1] if line.get("uuid")]
            self.refused = "duplicate record UUID" if repeated else None
            self.lines += repeated
        elif self.places[1:] and plan.chance(0.1):
            # A rewind by the user is the leaf even if nothing follows it.
            leaf, mark = plan.random.choice(self.places[1:])
            if any(fact[0] == "user" for fact in mark):
                self.beside("last-prompt", leafUuid=leaf, explicit=True, rewound=True)
                self.truth.rewind(mark)
                self.named = self.truth.mark()
        return self.titles()

    def around(self):
        """Lines of the harness, some of them in the tree."""
        plan = self.plan
        if plan.chance(0.2):
            self.say(plan.text(), isMeta=True)
            note = "note", self.lines[-1]["message"]["content"]
            self.truth.add(note)
            self.truth.hide(SESSION_MIGRATE, note)
        if plan.chance(0.2):
            self.leaf = self.line("attachment", self.leaf, attachment={"type": "skill_listing", "content": plan.text()})
        if plan.chance(0.2):
            self.leaf = self.line("system", self.leaf, subtype="local_command", content=plan.text(), level="info")
        if plan.chance(0.2):
            self.beside("last-prompt", lastPrompt="x", leafUuid=self.leaf)
            self.named = self.truth.mark() if self.leaf else self.named
        if self.leaf and plan.chance(0.2):
            # A subagent's line in an earlier version's file.
            message = {"role": "user", "content": plan.text()}
            self.truth.interface.append(("user", message["content"]))
            self.lines.append({**self.lines[-1], "type": "user", "uuid": plan.uuid(), "parentUuid": None, "isSidechain": True, "message": message})

    def answer(self, answer):
        plan, id = self.plan, f"msg_{self.plan.uuid()}"
        results, answered = [], []
        blocks = answer.blocks
        for nth, (kind, block) in enumerate(blocks):
            usage = answer.usage
            if self.is_old and nth + 1 < len(blocks):
                usage = (usage[0], 1, *usage[2:])
            self.leaf = self.line("assistant", self.leaf, requestId=f"req_{id}", message={
                "id": id, "type": "message", "role": "assistant", "model": "claude-opus-4-8", "content": [content(kind, block)],
                "stop_reason": None if self.is_old else answer.stop, "stop_sequence": None, "usage": counts(usage),
            })
            if kind == "call":
                results.append((self.leaf, block))
                if not self.is_old and plan.chance(0.2) and nth + 1 < len(blocks):
                    # The first calls run while the answer comes; the next line still hangs on the call.
                    parent, call = results.pop()
                    self.result(parent, call)
                    answered.append(call)
                    self.leaf = parent
        self.truth.answer(answer)
        for parent, call in results:
            if self.is_old and plan.chance(0.5):
                parent = self.line("progress", parent, data={"type": "hook_progress"})
            self.result(parent, call)
            answered.append(call)
        for call in answered:
            self.truth.result(call)
        # The line of each result but the last one is a branch by its parent.
        self.truth.hide(SESSION_MIGRATE, *map(result, answered[:-1]))
        if answer.calls() and plan.chance(0.1):
            text = plan.text()
            self.leaf = self.line("attachment", self.leaf, attachment={"type": "queued_command", "prompt": text, "commandMode": "prompt"})
            self.truth.add(("user", text))
            self.truth.hide(AGENT_SESSIONS, ("user", text))
            self.truth.hide(SESSION_MIGRATE, ("user", text))

    def result(self, parent, call):
        block = {"tool_use_id": call.id, "type": "tool_result", "content": call.text}
        if call.image:
            block["content"] = [{"type": "text", "text": call.text}, image(call.image)]
        if call.is_error or self.plan.chance(0.5):
            block["is_error"] = call.is_error
        message = {"role": "user", "content": [block]}
        self.leaf = self.line("user", parent, message=message, toolUseResult={"stdout": "copy"}, sourceToolAssistantUUID=parent)

    def compaction(self):
        plan, summary = self.plan, self.plan.text(40)
        metadata = {"trigger": "auto", "preTokens": 1000}
        last = [line for line in self.lines if line["type"] in ("user", "assistant") and not line["isSidechain"]][-1]["uuid"]
        boundary = self.line(
            "system", None, logicalParentUuid=self.leaf, subtype="compact_boundary", content="Conversation compacted",
            compactMetadata=metadata, isMeta=False, level="info",
        )
        self.leaf = boundary
        self.say(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        if plan.chance(0.5):
            metadata["preservedSegment"] = {"headUuid": last, "anchorUuid": self.leaf, "tailUuid": last}
            metadata["preservedMessages"] = {"anchorUuid": self.leaf, "uuids": [last], "allUuids": [last]}
        self.truth.add(("compaction", summary))

    def api_error(self):
        text = self.plan.text()
        self.leaf = self.line("assistant", self.leaf, isApiErrorMessage=True, error="unknown", message={
            "id": self.plan.uuid(), "type": "message", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}],
            "stop_reason": "stop_sequence", "stop_sequence": "", "usage": counts((0, 0, 0, 0)),
        })
        self.truth.add(("assistant", text))

    def titles(self):
        """Titles of all kinds; a custom one goes before those of the model."""
        plan, title = self.plan, None
        if plan.chance(0.3):
            title = plan.text(4)
            self.beside("ai-title", aiTitle=title)
        if plan.chance(0.3):
            title = plan.text(4)
            self.beside("custom-title", customTitle=title)
        return title


def counts(usage):
    read = dict(zip(("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), usage))
    return {**read, "service_tier": "standard"}


def image(data):
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def content(kind, block):
    match kind:
        case "thought":
            return {"type": "thinking", "thinking": block, "signature": "c2ln"}
        case "text":
            return {"type": "text", "text": block}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
