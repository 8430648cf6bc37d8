"""An agent for editors that speak the Agent Client Protocol (ACP) v1. abridged holds its sessions and runs its turns.

Usage: acp_agent.py [MODEL] [ABRIDGED] (Python 3.10 or later; docs/ACP.md maps the two protocols)
MODEL is the `provider/id` of a model of abridged's settings. The default is a model in this file, which needs no key.
"""
import itertools, json, os, pathlib, queue, re, subprocess, sys, threading, uuid

MODEL, ABRIDGED = sys.argv[1:] + ["builtin/echo", "abridged"][len(sys.argv) - 1:]
READ = {"name": "read", "description": "Reads a text file.", "inputSchema":
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}
SETUP = {"model": MODEL, "tools": [READ], "systemPrompt": "You answer questions about files. The tool `read` reads one."}
if MODEL == "builtin/echo":  # a small window, and no summary ahead of the threshold: a user sees a compaction soon
    ECHO = {"provider": "builtin", "id": "echo", "api": "client", "contextWindow": 8000, "maxOutputTokens": 1000}
    SETUP["settings"] = {"models": [ECHO], "compaction": {"keepRecentTokens": 1500, "speculative": False}}
COMMANDS = [{"name": "compact", "description": "Compacts the context.", "input": {"hint": "wishes for the summary"}},
            {"name": "undo", "description": "Undoes the last compaction."}]
CHOICES = [{"optionId": kind, "kind": kind, "name": name} for name, kind in {"Allow": "allow_once", "Reject": "reject_once"}.items()]
CHUNKS = {"text": "agent_message_chunk", "thinking": "agent_thought_chunk"}
NOTICES = {  # events that have no other form in ACP
    "retry_start": "The model is asked again ({attempt} of {maxAttempts})",
    "recovery_start": "The answer leaves the context ({reason}), remedy: {action}",
    "model_changed": "The model is {to[provider]}/{to[id]} now ({reason})",
    "pruned": "Old tool results are shortened by {tokensSaved} tokens",
}

class Failure(Exception):  # an error of JSON-RPC
    def __init__(self, message, code=-32603, data=None):
        self.error = {"code": code, "message": message, "data": data}

class Peer:
    """The other side of a connection. ACP and abridged agree on its form: JSON-RPC 2.0, a frame a line, requests both
    ways. A handler of a request gets `reply`, and calls it at once or later with the result or a `Failure`."""
    def __init__(self, reader, writer, requests, notifications):
        self.reader, self.writer, self.requests, self.notifications = reader, writer, requests, notifications
        self.ids, self.waiting, self.outbox = itertools.count(1), {}, queue.SimpleQueue()
        threading.Thread(target=self.write, daemon=True).start()

    def send(self, **frame):
        self.outbox.put(frame)  # does not wait: an editor that reads slowly holds up no event of the daemon

    def write(self):
        while True:
            self.writer.write(json.dumps({"jsonrpc": "2.0"} | self.outbox.get()).encode() + b"\n")
            self.writer.flush()

    def request(self, method, then=lambda answer: None, /, **params):
        """Sends a request. `then` gets the result or a `Failure`, before the frame after the answer is read."""
        request = next(self.ids)
        self.waiting[request] = then
        self.send(id=request, method=method, params=params)

    def call(self, method, /, **params):
        """Sends a request and waits for its result, in a handler of the other side."""
        answers = queue.SimpleQueue()
        self.request(method, answers.put, **params)
        answer = answers.get()
        if isinstance(answer, Failure):
            raise answer
        return answer

    def read(self):
        for frame in map(json.loads, self.reader):
            if "id" in frame and "method" in frame:
                self.answer(frame["id"], frame["method"], frame.get("params") or {})
            elif "method" in frame:
                self.notifications.get(frame["method"], lambda **_: None)(**frame["params"])
            else:
                self.waiting.pop(frame["id"])(Failure(**frame["error"]) if "error" in frame else frame["result"])

    def answer(self, request, method, params):
        def reply(answer):
            self.send(id=request, **({"error": answer.error} if isinstance(answer, Failure) else {"result": answer}))
        try:
            if method not in self.requests:
                raise Failure(f"{method} is no method of this agent", -32601)
            self.requests[method](reply, **params)
        except Exception as error:
            reply(error if isinstance(error, Failure) else Failure(repr(error)))

class Session:
    """An open session, whose events become updates for the editor."""
    def __init__(self, session_id, cwd):
        self.id, self.cwd = session_id, pathlib.Path(cwd)
        self.reply, self.end, self.is_cancelled = None, None, False  # of the prompt that runs
        self.compaction = self.part = self.message = None            # what is being written

    def update(self, kind, /, **fields):
        editor.send(method="session/update", params={"sessionId": self.id, "update": {"sessionUpdate": kind} | fields})

    def show(self, event, place):
        """Shows an event of the daemon. `place` is unique in the session, also after a restart."""
        if event["type"] in ("entry_appended", "retry_start", "recovery_start"):
            self.message = None  # the next text belongs to another message
        match event:
            case {"type": "message_delta", "kind": "text" | "thinking" as kind, "text": text}:
                self.message = self.message or place
                self.update(CHUNKS[kind], messageId=self.message, content=text_block(text))
            case {"type": "tool_start", "toolCallId": call, "name": name, "arguments": arguments}:
                self.show_call(call, name, arguments, "pending")
            case {"type": "tool_end", "toolCallId": call, "isError": failed}:
                self.update("tool_call_update", toolCallId=call, status="failed" if failed else "completed")
            case {"type": "entry_appended", "entry": {"message": {"role": "toolResult"}} as entry}:
                self.replay(entry)  # `tool_end` has no content
            case {"type": "usage_updated", "usage": {"contextTokens": used, "contextWindow": int(size)}}:
                self.update("usage_update", used=used, size=size)
            case {"type": "compaction_start", "reason": reason, "tokensBefore": before}:
                self.compaction, self.part = place, None
                self.compact(place, "in_progress", is_new=True, reason=reason, tokensBefore=before)
            case {"type": "compaction_progress", "stage": stage, "share": share}:
                self.compact(self.compaction, "in_progress", stage=stage, share=share)
            case {"type": "summary_chunk", "text": text} if self.compaction and "compaction" in supported:
                self.add_to_summary((event["source"], event["part"], event["attempt"]), text)
            case {"type": "compaction_end", "outcome": outcome} if self.compaction:
                compaction, self.compaction = self.compaction, None
                if outcome == "completed":
                    self.show_summary(compaction, event["result"])
                else:  # ACP has no `skipped`, which changes as little as `cancelled`
                    status, error = ("failed", event["errorMessage"]) if outcome == "failed" else ("cancelled", None)
                    self.compact(compaction, status, summary=None, error=error, outcome=outcome)
            case {"type": "notice", "severity": severity, "title": title} if "notices" in supported:
                self.update("notice", severity=severity, title=title, description=event.get("detail"))
            case {"type": kind} if kind in NOTICES and "notices" in supported:
                self.update("notice", severity="info", title=NOTICES[kind].format_map(event), description=event.get("errorMessage"))
            case {"type": "turn_end"}:
                self.end = event
            case {"type": "settled"} if self.end and self.reply:  # a compaction that follows the turn is a part of the prompt
                failed, is_cut = self.end["outcome"] == "failed", self.end["stopReason"] == "length"
                stop = {"stopReason": "max_tokens" if is_cut else "end_turn"}
                self.finish(Failure(self.end["errorMessage"], data=self.end["error"]) if failed else stop)

    def compact(self, compaction, status, is_new=False, **fields):
        """Updates a compaction. An editor that knows no compactions gets a tool call in the place of one."""
        patch = {name: fields.pop(name) for name in ("summary", "error") if name in fields}
        if "compaction" in supported:
            meta = {"_meta": {"abridged": fields}} if fields else {}
            self.update("compaction_update", compactionId=compaction, status=status, **patch, **meta)
        elif is_new or status != "in_progress":
            blocks = patch.get("summary") or [text_block(patch[name]) for name in patch if patch[name]]
            self.update("tool_call" if is_new else "tool_call_update", toolCallId=compaction, title="Compact the context",
                        kind="think", status="failed" if status == "cancelled" else status, content=contents(blocks))

    def add_to_summary(self, part, text):
        """Shows a piece of a summary. The beginning of a split turn may be written at the same time; the history counts."""
        if self.part not in (None, part):
            if self.part[0] == "history" != part[0]:
                return
            self.compact(self.compaction, "in_progress", summary=[])  # another text takes the place of this one
        self.part = part
        self.update("compaction_summary_chunk", compactionId=self.compaction, content=text_block(text))

    def show_summary(self, compaction, result, is_new=False):
        summary = {"summary": [text_block(result["summary"])]} if result["summary"] else {}  # too long: the pieces stay
        self.compact(compaction, "completed", is_new, **summary, tokensAfter=result.get("tokensAfter"))

    def show_call(self, call, name, arguments, status):
        self.update("tool_call", toolCallId=call, title=f"{name} {arguments.get('path', '')}", status=status,
                    kind="read" if name == "read" else "other", rawInput=arguments)

    def replay(self, entry):
        """Shows an entry of the session file."""
        match entry | entry.get("message", {}):
            case {"type": "compaction", "id": compaction}:  # also an undo, whose summary says so
                self.show_summary(compaction, entry, is_new=True)
            case {"role": "toolResult", "toolCallId": call} as result:
                status = "failed" if result.get("isError") else "completed"
                self.update("tool_call_update", toolCallId=call, status=status, content=contents(blocks_of(result)))
            case {"role": "user" | "assistant" as role} as message:
                for block in blocks_of(message):
                    if block["type"] == "toolCall":  # a result follows, unless the call was interrupted
                        self.show_call(block["id"], block["name"], block["arguments"], "failed")
                    elif kind := "user_message_chunk" if role == "user" else CHUNKS.get(block["type"]):
                        content = text_block(block["thinking"]) if block["type"] == "thinking" else plain(block)
                        self.update(kind, messageId=entry["id"], content=content)

    def finish(self, answer):
        reply, self.reply = self.reply, None
        reply({"stopReason": "cancelled"} if self.is_cancelled else answer)

def text_block(text):
    return {"type": "text", "text": text}

def plain(block):  # a text or an image, as both protocols have them
    return {name: block[name] for name in ("type", "text", "data", "mimeType") if name in block}

def blocks_of(message):
    return [text_block(message["content"])] if isinstance(message["content"], str) else message["content"]

def contents(blocks):
    return [{"type": "content", "content": plain(block)} for block in blocks]

# The editor asks.
sessions, supported = {}, set()

def initialize(reply, clientCapabilities=None, **_):
    supported.update(name for name, value in ((clientCapabilities or {}).get("session") or {}).items() if value is not None)
    reply({"protocolVersion": 1, "agentInfo": {"name": "acp_agent", "version": "0.1.0"}, "agentCapabilities": {
        "loadSession": True, "promptCapabilities": {"image": True}, "sessionCapabilities": {"list": {}}}})

def new(reply, cwd, **_):
    def created(answer):
        if isinstance(answer, Failure):
            return reply(answer)
        session = answer["session"]["sessionId"]
        sessions[session] = Session(session, cwd)
        reply({"sessionId": session})  # the editor gets the id before the first update
        sessions[session].update("available_commands_update", availableCommands=COMMANDS)
    daemon.request("session/new", created, cwd=cwd, **SETUP)

def load(reply, sessionId, cwd, **_):
    usage = daemon.call("session/load", sessionId=sessionId, **SETUP)["session"]["usage"]
    session, cursor = sessions.get(sessionId) or Session(sessionId, cwd), None
    while page := daemon.call("session/entries", sessionId=sessionId, since=cursor):
        for entry in page["entries"]:
            session.replay(entry)
        if not (cursor := page["nextCursor"]):
            break
    session.show({"type": "usage_updated", "usage": usage}, None)
    session.update("available_commands_update", availableCommands=COMMANDS)
    sessions[sessionId] = session
    reply({})

def list_sessions(reply, cwd=None, cursor=None, **_):
    page = daemon.call("session/list", cwd=cwd, cursor=cursor)
    listed = [{"title": session["title"] or session["preview"]} | {name: session[name] for name in ("sessionId", "cwd", "updatedAt")}
              for session in page["sessions"]]
    reply({"nextCursor": page["nextCursor"], "sessions": listed})

def prompt(reply, sessionId, prompt, **_):
    session = sessions.get(sessionId)
    if not session:
        raise Failure(f"session {sessionId} is not open; send session/load", -32002)
    if session.reply:
        raise Failure("a prompt runs in this session; send session/cancel first", -32600)
    blocks = [plain(block) if block["type"] in ("text", "image") else text_block(block["uri"]) for block in prompt]
    command, _, wishes = blocks[0].get("text", "").partition(" ")
    session.reply, session.end, session.is_cancelled = reply, None, False
    def then(answer):  # the end of a turn is an event
        if isinstance(answer, Failure) or "turnId" not in answer:
            session.finish(answer if isinstance(answer, Failure) else {"stopReason": "end_turn"})
        elif answer["disposition"] == "queued" and session.is_cancelled:  # before the turn began: it would wait for another
            daemon.request("session/clear_queue", session.finish, sessionId=sessionId)
    # Nothing waits here: a cancel that follows reaches the daemon after the request.
    if command == "/compact":  # with wishes the model writes the summary, or the compaction fails
        daemon.request("session/compact", then, sessionId=sessionId, wait=True, instructions=wishes or None,
                       model=MODEL if wishes else None)
    elif command == "/undo":
        daemon.request("session/undo_compaction", then, sessionId=sessionId)
    else:
        daemon.request("session/prompt", then, sessionId=sessionId, message=blocks)

def cancel(sessionId, **_):
    if sessionId in sessions:
        sessions[sessionId].is_cancelled = True
        daemon.request("session/cancel", sessionId=sessionId)

# The daemon tells and asks.
def event(sessionId, epoch, seq, event, **_):
    if sessionId in sessions:
        sessions[sessionId].show(event, f"{epoch}-{seq}")

def use_tool(reply, sessionId, toolCallId, name, arguments, **_):
    session = sessions[sessionId]
    def decided(answer):
        if isinstance(answer, Failure) or answer["outcome"].get("optionId") != "allow_once":
            return reply({"content": "The user did not allow this call.", "isError": True})
        session.update("tool_call_update", toolCallId=toolCallId, status="in_progress")
        try:
            reply({"content": (session.cwd / arguments["path"]).read_text(errors="replace")})
        except (KeyError, TypeError, OSError) as error:
            reply({"content": repr(error), "isError": True})
    editor.request("session/request_permission", decided, sessionId=sessionId, options=CHOICES,
                   toolCall={"toolCallId": toolCallId})

def complete(reply, purpose, messages, **_):
    """The model in this file. A real one answers from a thread of its own, and stops at `$/cancelRequest`."""
    said, stop = "".join(block.get("text", "") for block in blocks_of(messages[-1])), "stop"
    if purpose != "turn":
        heading = {"compaction": "## Goal\n", "turn_prefix": "## Original Request\n"}.get(purpose, "")
        block = text_block(heading + "\n".join(f"- {line[:80]}" for line in re.findall(r"\[User\]: (.*)", said)[-20:]))
    elif said.startswith("read ") and messages[-1]["role"] == "user":
        block, stop = {"type": "toolCall", "id": str(uuid.uuid4()), "name": "read", "arguments": {"path": said[5:]}}, "toolUse"
    else:
        block = text_block(f"You said: {said[:200]}\n\n" + "This sentence fills the window. " * 60)
    reply({"message": {"role": "assistant", "content": [block], "stopReason": stop}})

process = subprocess.Popen([ABRIDGED, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
daemon = Peer(process.stdout, process.stdin, {"llm/complete": complete, "tool/call": use_tool}, {"session/event": event})
editor = Peer(sys.stdin.buffer, sys.stdout.buffer,
              {"initialize": initialize, "session/new": new, "session/load": load, "session/list": list_sessions,
               "session/prompt": prompt}, {"session/cancel": cancel})

def serve_daemon():
    daemon.read()
    os._exit(process.wait())  # the reader of the editor may wait for input

daemon.request("initialize", protocolVersion=1, processId=os.getpid(), capabilities={"llm": {}, "tools": {}})
threading.Thread(target=serve_daemon).start()
editor.read()
process.stdin.close()  # the daemon ends, and with it this program
