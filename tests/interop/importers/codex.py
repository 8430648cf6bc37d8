"""Sessions in the form of Codex: `{timestamp, type, payload}` lines. Legacy files repeat texts in events of their own; newer ones number
their lines, and repeat texts as completed items."""

import json
import os

from plans import AGENT_SESSIONS, SESSION_MIGRATE, Plan, Truth, canonical

TIME = 1_772_359_200
PREFIX = "Another language model started to solve this problem and produced a summary of its thinking process. "


class Session:
    agent = "codex"

    def __init__(self, seed, home):
        self.plan, self.truth = Plan(f"codex:{seed}"), Truth()
        self.home, self.id, self.cwd = home, self.plan.uuid7(), f"/home/user/project-{seed}"
        self.is_legacy = self.plan.chance(0.5)
        self.lines, self.clock, self.sums = [], 0, [0] * 5
        # The places to which a rollback may go: marks of the truth before each turn.
        self.turns, self.title = [], None
        self.revision, self.bases = "", []
        # The reason for which session-migrate refuses the file.
        self.refused = None
        self.meta()
        self.write()
        self.path = self.save()

    def time(self):
        self.clock += 1
        return f"2026-03-01T{10 + self.clock // 3600:02}:{self.clock // 60 % 60:02}:{self.clock % 60:02}.{self.clock % 1000:03}Z"

    def line(self, kind, **payload):
        number = {} if self.is_legacy else {"ordinal": len(self.lines) + self.first}
        self.lines.append({"timestamp": self.time(), **number, "type": kind, "payload": payload})

    def item(self, kind, **payload):
        self.line("response_item", type=kind, **payload)

    def event(self, kind, **payload):
        self.line("event_msg", type=kind, **payload)

    def meta(self, first=0, **more):
        self.first = first
        mode = {} if self.is_legacy else {"history_mode": "paginated"}
        self.line(
            "session_meta", id=self.id, timestamp="2026-03-01T10:00:00.000Z", cwd=self.cwd, originator="codex_cli_rs",
            cli_version="0.171.0", source="cli", model_provider="openai", base_instructions={"text": "Be brief."},
            git={"branch": "main"}, **mode, **more,
        )

    def save(self):
        revision = f"_{self.revision}" if self.revision else ""
        name = f"rollout-2026-03-01T10-{len(self.bases):02}-00-{self.id}{revision}.jsonl"
        path = self.home / "sessions/2026/03/01" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(self.lines))
        # The files of one session are of different times, even if a program writes them.
        os.utime(path, (TIME + 60 * len(self.bases),) * 2)
        return path

    def write(self):
        plan = self.plan
        self.context()
        for number in range(plan.random.randint(1, 7)):
            if number and plan.chance(0.2):
                self.compaction()
            elif number and self.is_legacy and plan.chance(0.2):
                self.rollback()
            elif number and not self.is_legacy and plan.chance(0.2):
                self.revert()
            if number and self.is_legacy and plan.chance(0.1):
                # A session that is resumed repeats its first line.
                self.lines.append({**self.lines[0], "timestamp": self.time()})
            self.turn()
        if self.is_legacy and plan.chance(0.3):
            self.title = plan.text(4)
            self.event("thread_name_updated", thread_name=self.title)

    def context(self):
        """Texts of Codex itself. In a file with completed items session-migrate takes the texts of those alone."""
        for role, tag in (("developer", "permissions instructions"), ("user", "environment_context")):
            text = f"<{tag}>{self.plan.text()}</{tag}>"
            self.say(role, [text])
            if not self.is_legacy:
                self.truth.hide(SESSION_MIGRATE, (role, text))

    def say(self, role, texts, image=None):
        content = [{"type": "input_text", "text": text} for text in texts]
        if image:
            content.append({"type": "input_image", "image_url": f"data:image/png;base64,{image}"})
        self.item("message", role=role, content=content)
        self.truth.add(*[(role, text) for text in texts], *([("image", image)] if image else []))

    def turn(self):
        plan = self.plan
        model = plan.random.choice(("gpt-5", "gpt-5", "gpt-5-codex"))
        self.line("turn_context", cwd=self.cwd, model=model, approval_policy="never", effort="medium", summary="auto")
        self.turns.append((len(self.lines), self.truth.mark()))
        turn = plan.turn()
        self.say("user", turn.texts, turn.image)
        if self.is_legacy:
            self.event("user_message", message="\n".join(turn.texts), images=[])
        else:
            content = [{"type": "text", "text": text} for text in turn.texts]
            self.event("item_completed", item={"type": "UserMessage", "id": plan.uuid7(), "content": content})
        for answer in turn.answers:
            self.answer(answer)

    def answer(self, answer):
        plan, results = self.plan, []
        for kind, block in answer.blocks:
            if kind == "thought":
                summary = [{"type": "summary_text", "text": block}]
                self.item("reasoning", id=f"rs_{plan.uuid()}", summary=summary, content=None, encrypted_content="c2VhbGVk")
            elif kind == "text":
                if self.is_legacy:
                    self.event("agent_message", message=block)
                self.item("message", id=f"msg_{plan.uuid()}", role="assistant", content=[{"type": "output_text", "text": block}])
                if not self.is_legacy:
                    self.event("item_completed", item={"type": "AgentMessage", "id": plan.uuid7(), "content": [{"type": "Text", "text": block}]})
            else:
                results.append((self.call(block), block))
        if plan.chance(0.1):
            self.item("web_search_call", id=f"ws_{plan.uuid()}", status="completed", action={"type": "search", "query": "x"})
        self.truth.answer(answer)
        if self.is_legacy:
            self.usage(answer.usage)
        else:
            self.line("token_usage_record", response_id=plan.uuid(), usage={})
        for kind, call in results:
            output = call.text
            if call.image:
                output = [{"type": "input_text", "text": call.text}, {"type": "input_image", "image_url": f"data:image/png;base64,{call.image}"}]
            self.item(f"{kind}_call_output", call_id=call.id, output=output)
            # An output does not say whether the call failed.
            self.truth.result(call, has_error=False)
        if not self.is_legacy:
            self.usage(answer.usage)
        if plan.chance(0.2):
            # The same report again: the limits changed.
            self.lines.append({**self.lines[-1], "timestamp": self.time()} if self.is_legacy and not results else self.report())

    def call(self, call):
        """Writes a call. Returns the kind of its output."""
        plan = self.plan
        match plan.random.choice(("function", "function", "custom", "shell")):
            case "custom":
                call.arguments = {"input": plan.text()}
                named = {"call_id": call.id, "name": call.name, "input": call.arguments["input"]}
                self.item("custom_tool_call", id=f"ctc_{plan.uuid()}", status="completed", **named)
                return "custom_tool"
            case "shell":
                call.name, call.arguments = "local_shell", {"type": "exec", "command": ["ls", plan.text()], "timeout_ms": None}
                ids = {"id": f"lsh_{plan.uuid()}", "call_id": call.id}
                if plan.chance(0.5):
                    # The output names the item.
                    call.id, ids["call_id"] = ids["id"], None
                self.item("local_shell_call", **ids, status="completed", action=call.arguments)
                for reader in (AGENT_SESSIONS, SESSION_MIGRATE):
                    self.truth.hide(reader, ("call", call.id, call.name, canonical(call.arguments)))
                return "function"
        self.item("function_call", id=f"fc_{plan.uuid()}", name=call.name, arguments=json.dumps(call.arguments), call_id=call.id)
        return "function"

    def usage(self, usage):
        """Reports the usage of an answer. Codex counts what is cached as input, too."""
        fresh, output, read, write = usage
        counts = [fresh + read + write, read, write, output, 0]
        self.sums = [a + b for a, b in zip(self.sums, counts)]
        self.last = counts
        self.lines.append(self.report())

    def report(self):
        info = {"total_token_usage": counted(self.sums), "last_token_usage": counted(self.last), "model_context_window": 272000}
        number = {} if self.is_legacy else {"ordinal": len(self.lines) + self.first}
        return {"timestamp": self.time(), **number, "type": "event_msg", "payload": {"type": "token_count", "info": info, "rate_limits": {}}}

    def compaction(self):
        plan = self.plan
        if plan.chance(0.3):
            # A provider's own one, which nobody else can read.
            self.line("compacted", message="", replacement_history=[{"type": "compaction", "encrypted_content": "c2VhbGVk"}])
            return
        summary = PREFIX + plan.text(40)
        kept = [text for kind, text in (fact for fact in self.truth.path[-20:] if fact[0] == "user")] if plan.chance(0.5) else []
        history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]} for text in [*kept, summary]]
        self.line("compacted", message=summary, replacement_history=history)
        self.truth.add(("compaction", summary))
        self.truth.hide(AGENT_SESSIONS, ("compaction", summary))

    def rollback(self):
        count = self.plan.random.randint(1, len(self.turns))
        self.truth.rewind(self.turns[-count][1])
        del self.turns[-count:]
        self.event("thread_rolled_back", num_turns=count)

    def revert(self):
        """The session goes on in another file, whose history begins with a part of this one."""
        lines, mark = self.plan.random.choice(self.turns)
        kept = encoded(self.lines[:lines])
        self.bases.append(self.save())
        base, self.revision, ordinal = self.revision or self.id, self.plan.uuid7(), self.first + lines
        # What is not kept is in another file: it is no branch of this one.
        self.truth.rewind(mark)
        self.truth.all = list(mark)
        self.truth.hide(AGENT_SESSIONS, *mark)
        self.refused = "history_base"
        self.lines, self.turns = [], []
        self.meta(ordinal, history_base={"thread_id": base, "end_ordinal_exclusive": ordinal, "end_byte_offset": len(kept)})


def encoded(lines):
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def counted(counts):
    names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens")
    return {**dict(zip(names, counts)), "total_tokens": counts[0] + counts[3]}
