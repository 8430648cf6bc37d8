"""A host with a streaming agent loop of its own. abridged keeps its session inside the window.

Usage: streaming_loop.py BASE_URL MODEL WINDOW [anthropic|openai_chat] [ABRIDGED] < requests of the user, one a line
API_KEY in the environment is the key of the provider. Ctrl-C ends a turn.
"""
import http.client, itertools, json, os, pathlib, queue, signal, subprocess, sys, threading, time, urllib.request

BASE_URL, MODEL, WINDOW, FORMAT, ABRIDGED = sys.argv[1:] + ["openai_chat", "abridged"][len(sys.argv) - 4:]
ANTHROPIC, KEY = FORMAT == "anthropic", os.environ.get("API_KEY", "")
PATH = "/v1/messages" if ANTHROPIC else "/chat/completions"
HEADERS = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": KEY} if ANTHROPIC else \
    {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
STREAM = {"stream": True} if ANTHROPIC else {"stream": True, "stream_options": {"include_usage": True}}
NAME = {"provider": "local", "id": MODEL}
SETTINGS = {"models": [NAME | {"api": FORMAT, "baseUrl": BASE_URL, "contextWindow": int(WINDOW)}
                       | ({"apiKeyEnv": "API_KEY"} if KEY else {})]}
READ = {"name": "read", "description": "Reads a text file.", "inputSchema":
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}
EVENTS = {  # the events that a user sees
    "compaction_start": "compacting ({reason}): {tokensBefore} of {contextWindow} tokens",
    "compaction_progress": "compacting: {share:.0%}",
    "compaction_end": "compaction {outcome}",
    "recovery_start": "recovery ({reason}): {action}",
    "recovery_end": "recovery {outcome}",
    "pruned": "old tool results shortened: {tokensSaved} tokens saved",
    "model_changed": "model: {to[provider]}/{to[id]} ({reason})",
    "notice": "{severity}: {title}",
    "settled": "settled",
}
# In a process group of its own, so that Ctrl-C in the terminal ends the turn and not the daemon.
daemon = subprocess.Popen([ABRIDGED, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
ids, answers = itertools.count(1), queue.Queue()

def read():
    """Reads the frames of the daemon. Events are shown at once, also while the model writes."""
    for frame in map(json.loads, daemon.stdout):
        if frame.get("method") == "session/event" and frame["params"]["event"]["type"] in EVENTS:
            event = frame["params"]["event"]
            detail = event.get("errorMessage") or event.get("detail") or ""
            print(f"[{EVENTS[event['type']].format_map(event)}]", detail, file=sys.stderr, flush=True)
        elif "method" not in frame:
            answers.put(frame)
    answers.put(None)

def send(**frame):
    daemon.stdin.write(json.dumps({"jsonrpc": "2.0"} | frame).encode() + b"\n")
    daemon.stdin.flush()

def call(method, **params):
    """Sends a request to the daemon and returns its result. Ctrl-C cancels the request."""
    request, answer = next(ids), {}
    send(id=request, method=method, params=params)
    try:
        while answer.get("id") != request:
            answer = answers.get() or sys.exit("the daemon ended")
    except KeyboardInterrupt:
        send(method="$/cancelRequest", params={"id": request})
        raise
    if "error" in answer:
        raise RuntimeError(answer["error"]["data"]["code"], answer["error"]["message"])
    return answer["result"]

class Refused(Exception):
    """The provider's error. `pause` is the time in seconds after which a request may succeed, or None."""
    def __init__(self, text, status=None, pause=None):
        super().__init__(text)
        passes = status in (408, 409, 429, 500, 502, 503, 504, 529) or "overloaded" in text
        self.pause = min(float(pause), 60) if passes and str(pause).isdigit() else 1 if passes else None

class Answer:
    """An answer of the model, put together from the events of its stream in the form of the provider."""
    def __init__(self):
        self.content, self.message, self.calls, self.usage, self.stop = [], {}, [], {}, None

    def take(self, event):
        """Takes an event and returns its text."""
        if "error" in event:
            raise Refused(json.dumps(event["error"]))
        return self.take_anthropic(event) if ANTHROPIC else self.take_chat(event)

    def take_anthropic(self, event):
        delta = event.get("delta") or {}
        if event["type"] == "message_start":
            self.usage = event["message"].get("usage") or {}
        elif event["type"] == "content_block_start":
            self.content.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            for field in {"text", "thinking", "signature", "partial_json"} & delta.keys():
                block = self.content[event["index"]]
                block[field] = block.get(field, "") + delta[field]
        elif event["type"] == "message_delta":
            self.stop = delta.get("stop_reason")
            self.usage |= event.get("usage") or {}
        return delta.get("text", "")

    def take_chat(self, event):
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices") or []:
            delta, self.stop = choice["delta"], choice.get("finish_reason") or self.stop
            for field in ("content", "refusal", "reasoning_content"):
                if delta.get(field):
                    self.message[field] = self.message.get(field, "") + delta[field]
            for piece in delta.get("tool_calls") or []:
                at = min(piece.get("index", len(self.calls)), len(self.calls))  # some servers count nothing
                if at == len(self.calls):
                    call = {"name": "", "arguments": ""}
                    self.calls.append({"id": piece.get("id") or f"call_{at}", "type": "function", "function": call})
                for field in ("name", "arguments"):
                    self.calls[at]["function"][field] += (piece.get("function") or {}).get(field) or ""
            return delta.get("content") or delta.get("refusal") or ""
        return ""

    def whole(self):
        """The message as the provider returns it without a stream."""
        for block in self.content:
            if block["type"] == "tool_use":
                block["input"] = arguments(block.pop("partial_json", ""))
        calls = {"tool_calls": self.calls} if self.calls else {}
        return {"role": "assistant"} | ({"content": self.content} if ANTHROPIC else self.message | calls)

    def results(self):
        """Runs the calls and returns their results in the form of the provider."""
        if ANTHROPIC:
            blocks = [{"type": "tool_result", "tool_use_id": it["id"], "content": run(it["name"], it["input"])}
                      for it in self.content if it["type"] == "tool_use"]
            return [{"role": "user", "content": blocks}] if blocks else []
        return [{"role": "tool", "tool_call_id": it["id"],
                 "content": run(it["function"]["name"], arguments(it["function"]["arguments"]))} for it in self.calls]

def arguments(text):
    try:
        return dict(json.loads(text or "{}"))
    except (ValueError, TypeError):
        return {}

def run(name, given):
    """Runs a tool. The model reads its errors, too."""
    try:
        path = (pathlib.Path.cwd() / given["path"]).resolve()
        if name != "read" or pathlib.Path.cwd().resolve() not in path.parents:
            return f"{name} {path}: not allowed"
        return path.read_text(errors="replace")[:50_000] or "(empty)"
    except (OSError, KeyError, TypeError) as error:
        return f"{name}: {error!r}"

def stream(context, answer):
    """Sends a request to the provider and prints the text of its answer as it comes."""
    headers = HEADERS | context.get("headers", {})
    request = urllib.request.Request(BASE_URL + PATH, json.dumps(context["body"] | STREAM).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            for line in response:
                if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                    print(answer.take(json.loads(line[5:])), end="", flush=True)
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        raise Refused(f"{error.code} {text}", error.code, error.headers.get("retry-after")) from None
    if answer.stop is None:
        raise ConnectionError("the stream ended before the answer")

def turn(request):
    """Runs the model and its tools until the turn ends. Returns the reason for its end."""
    def report(messages, **facts):
        return call("session/append", sessionId=session, format=FORMAT, messages=messages, **facts)

    asked = report([{"role": "user", "content": request}])["entryIds"][0]
    failures = empty = 0
    while True:
        context = call("session/context", sessionId=session, format=FORMAT, wait=True)
        answer, of = Answer(), {"contextId": context["contextId"]}
        try:
            stream(context, answer)
        except KeyboardInterrupt:
            report([answer.whole()], stopReason="aborted", **of)  # it stays in the file and is in no context
            return "aborted"
        except Refused as error:
            next_step = report([], errorMessage=str(error), **of)["next"]
            if next_step.get("willRetry"):
                continue  # too long: the next context fits
            failures += 1
            if error.pause is None or failures > 3:
                return f"refused: {error}"
            time.sleep(error.pause)
            continue
        except (OSError, ValueError, http.client.HTTPException) as error:
            failures += 1  # no answer: there is nothing to report, and the request is sent again
            if failures > 3:
                return f"no connection: {error}"
            time.sleep(failures)
            continue
        print()
        next_step = report([answer.whole()], usage=answer.usage, stopReason=answer.stop, **of)["next"]
        failures = 0
        if next_step.get("willRetry"):
            continue  # cut off inside of a call or before any text: no call of this answer runs
        if answer.stop in ("refusal", "content_filter") or answer.message.get("refusal"):
            # The request would be declined again. It leaves the context, with the calls of this turn.
            call("session/navigate", sessionId=session, targetEntryId=asked, wait=True)
            return "declined"
        if answer.stop in ("max_tokens", "length", "model_context_window_exceeded"):
            return "cut off"  # the text stays, and a request "Go on." continues it
        results = answer.results()
        if results:
            report(results)
        elif answer.stop == "pause_turn":
            continue
        elif any(block.get("text") for block in answer.content) or answer.message.get("content"):
            return "done"
        else:
            empty += 1  # an empty answer is in no context: the same request once more
            if empty > 1:
                return "empty"

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the shell started it in the background
threading.Thread(target=read, daemon=True).start()
call("initialize", protocolVersion=1, processId=os.getpid())
new = call("session/new", cwd=os.getcwd(), model=NAME, tools=[READ], settings=SETTINGS)
session = new["session"]["sessionId"]
try:
    for line in filter(str.strip, sys.stdin):
        try:
            print(f"({turn(line.strip())})", flush=True)
        except KeyboardInterrupt:
            print("(aborted)", flush=True)
        except RuntimeError as error:  # context_overflow, for example: nothing can be left out any more
            print("(no context:", *error.args, end=")\n", flush=True)
except KeyboardInterrupt:
    pass  # between two turns it ends the host
daemon.stdin.close()
daemon.wait()
