"""Sessions in the form of Gemini CLI: one document in earlier versions, a record a line in newer ones."""

import hashlib
import json

from plans import AGENT_SESSIONS, Plan, Truth

ACKNOWLEDGEMENT = "Got it. Thanks for the additional context!"


class Session:
    agent = "gemini_cli"

    def __init__(self, seed, home):
        self.plan, self.truth = Plan(f"gemini:{seed}"), Truth()
        self.id, self.cwd = self.plan.uuid(), f"/home/user/project-{seed}"
        self.is_document, self.clock = self.plan.chance(0.3), 0
        self.meta = {
            "sessionId": self.id, "projectHash": hashlib.sha256(self.cwd.encode()).hexdigest(),
            "startTime": "2026-03-01T10:00:00.000Z", "lastUpdated": "2026-03-01T10:00:00.000Z", "kind": "main",
        }
        # The history as Gemini CLI has it: messages, each with the mark before it.
        self.records, self.messages = [self.meta], []
        # The first message to which a rewind may go: those that a compression keeps stand before its summary, too.
        self.first = 1
        # The ids of what the user typed, and the id of the one that is typed again.
        self.typed, self.again = set(), None
        self.title = None
        self.write()
        project = home / "tmp" / f"project-{seed}"
        ending = "json" if self.is_document else "jsonl"
        self.path = project / "chats" / f"session-2026-03-01T10-00-{self.id[:8]}.{ending}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        (project / ".project_root").write_text(self.cwd)
        if self.is_document:
            document = {**self.meta, "messages": [message for message, _ in self.messages], **({"summary": self.title} if self.title else {})}
            self.path.write_text(json.dumps(document, ensure_ascii=False, indent=self.plan.random.choice((None, 2))))
        else:
            self.path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self.records))

    def time(self):
        self.clock += 1
        return f"2026-03-01T{10 + self.clock // 3600:02}:{self.clock // 60 % 60:02}:{self.clock % 60:02}.{self.clock % 1000:03}Z"

    def message(self, kind, content, id=None, **fields):
        message = {"id": id or self.plan.uuid(), "timestamp": self.time(), "type": kind, "content": content, **fields}
        self.records.append(message)
        self.messages.append((message, self.truth.mark()))
        return message

    def write(self):
        plan = self.plan
        if not self.is_document:
            text = f"<session_context>{plan.text()}"
            message = {"id": plan.uuid(), "timestamp": self.time(), "type": "user", "content": [{"text": text}]}
            self.messages.append((message, []))
            self.records.append({"$set": {"messages": [message]}})
            self.truth.add(("note", text))
        for number in range(plan.random.randint(1, 7)):
            if number and not self.is_document:
                plan.random.choice((self.rewind, self.resume, self.compression, lambda: None, lambda: None))()
            if plan.chance(0.1):
                self.message(plan.random.choice(("info", "error", "warning")), plan.text())
            turn = plan.turn()
            content = [{"text": text} for text in turn.texts]
            if turn.image:
                content.append({"inlineData": {"mimeType": "image/png", "data": turn.image}})
            asked = self.message("user", turn.texts[0] if len(content) == 1 and plan.chance(0.5) else content, self.again)
            self.typed.add(asked["id"])
            self.again = None
            self.truth.user(turn.texts, turn.image)
            for answer in turn.answers:
                self.answer(answer)
        if plan.chance(0.3):
            self.title = plan.text(4)
            self.records.append({"$set": {"summary": self.title}})

    def answer(self, answer):
        plan = self.plan
        fresh, output, read, _ = answer.usage
        answer.usage = (fresh, output, read, 0)
        thoughts = [block for kind, block in answer.blocks if kind == "thought"]
        text = "".join(block for kind, block in answer.blocks if kind == "text")
        tokens = {"input": fresh + read, "output": output, "cached": read, "thoughts": 0, "tool": 0, "total": fresh + read + output}
        message = self.message(
            "gemini", text, thoughts=[{"subject": "", "description": thought, "timestamp": self.time()} for thought in thoughts],
            tokens=tokens, model="gemini-2.5-pro",
        )
        self.truth.answer(answer)
        if not answer.calls():
            return
        # The message is written again when its calls have run.
        whole = {**message, "toolCalls": [self.call(call) for call in answer.calls()]}
        self.records.append(whole)
        self.messages[-1] = (whole, self.messages[-1][1])
        for call in answer.calls():
            self.truth.result(call)
        if not self.is_document:
            self.message("user", [part for call in whole["toolCalls"] for part in call["result"] if isinstance(part, dict)])

    def call(self, call):
        key = "error" if call.is_error else "output"
        result = [{"functionResponse": {"id": call.id, "name": call.name, "response": {key: call.text}}}]
        if call.image:
            result.append({"inlineData": {"mimeType": "image/png", "data": call.image}})
        elif self.is_document and call.text and self.plan.chance(0.1):
            # An early version has the text alone.
            result = call.text
        status = "error" if call.is_error else "success"
        return {"id": call.id, "name": call.name, "args": call.arguments, "status": status, "timestamp": self.time(), "result": result}

    def rewind(self):
        if self.first == len(self.messages):
            return
        at = self.plan.random.randrange(self.first, len(self.messages))
        message, mark = self.messages[at]
        self.truth.rewind(mark)
        del self.messages[at:]
        self.records.append({"$rewindTo": message["id"]})
        self.again = message["id"] if message["id"] in self.typed and self.plan.chance(0.5) else None

    def resume(self):
        """A session that is resumed writes its messages again: without calls, counts and the model, and with calls as parts."""
        self.truth.hide(AGENT_SESSIONS, *self.truth.path)
        self.records.append(self.meta)
        messages = []
        for message, _ in self.messages:
            slim = {name: value for name, value in message.items() if name not in ("toolCalls", "tokens", "model", "thoughts")}
            if message["type"] == "gemini":
                calls = [{"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}} for call in message.get("toolCalls", [])]
                said = message["content"]
                slim["content"] = [*(said if isinstance(said, list) else [{"text": said}] if said else []), *calls]
            messages.append(slim)
        self.records.append({"$set": {"messages": messages}})

    def compression(self):
        plan, summary = self.plan, f"<state_snapshot>{self.plan.text(40)}</state_snapshot>"
        # agent-sessions has no history but the one that the last rewriting left.
        self.truth.hide(AGENT_SESSIONS, *self.truth.path)
        kept = self.messages[-1:]
        first = {"id": plan.uuid(), "timestamp": self.time(), "type": "user", "content": [{"text": summary}]}
        second = {"id": plan.uuid(), "timestamp": self.time(), "type": "gemini", "content": [{"text": ACKNOWLEDGEMENT}]}
        self.truth.interface.append(("assistant", ACKNOWLEDGEMENT))
        self.records.append({"$set": {"messages": [first, second, *[message for message, _ in kept]]}})
        self.truth.add(("compaction", summary))
        self.messages = [(first, self.truth.mark()), (second, self.truth.mark()), *[(message, self.truth.mark()) for message, _ in kept]]
        self.first = len(self.messages)
