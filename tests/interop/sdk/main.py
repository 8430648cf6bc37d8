"""Request bodies under the types of the providers' own SDKs: those that `session/context` gives, and those that the daemon sends
for a compaction by the provider. A member that a type does not have is an error."""

import http.server
import json
import os
import subprocess
import tempfile
import threading
import typing
from collections.abc import Iterable, Sequence

import anthropic
import openai
from anthropic.types.beta import message_create_params as anthropic_params
from openai.types.responses import response_compact_params, response_create_params
from typing_extensions import NotRequired, Required, get_type_hints, is_typeddict

MODEL = "claude-opus-5-5"
asked = []


class Server(http.server.BaseHTTPRequestHandler):
    """Anthropic and OpenAI: models that compact, and an answer to everything else."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        compaction = {"supported": True, "summarize": {"supported": True}}
        self.answer({"data": [{"id": MODEL, "capabilities": {"compaction": compaction}}], "has_more": False})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked.append((self.path, dict(self.headers), body))
        usage = {"input_tokens": 900, "output_tokens": 90}
        if self.path.endswith("/compact"):
            item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0"}
            return self.answer({"id": "r", "object": "response.compaction", "output": [item], "usage": usage})
        if "input" in body:
            trigger = body["input"][-1].get("type") == "compaction_trigger"
            text = {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "No."}]}
            item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0"} if trigger else text
            return self.answer({"id": "r", "status": "completed", "output": [item], "usage": usage})
        if "compaction" in body:
            block = {"type": "compaction", "content": "The provider's summary.", "signature": "c2ln", "encrypted_content": None}
            iterations = [dict(usage, type="compaction", cache_read_input_tokens=0, cache_creation_input_tokens=0)]
            return self.answer({"type": "message", "role": "assistant", "content": [block], "stop_reason": "compaction",
                                "usage": {"input_tokens": 0, "output_tokens": 0, "iterations": iterations}})
        self.answer({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "No."}],
                     "stop_reason": "end_turn", "usage": usage})


class Daemon:
    """A daemon of our own."""

    def __init__(self, settings):
        self.home = tempfile.TemporaryDirectory()
        config = os.path.join(self.home.name, "config")
        os.makedirs(config)
        with open(os.path.join(config, "settings.json"), "w") as file:
            json.dump(settings, file)
        env = dict(os.environ, ABRIDGED_CONFIG_DIR=config, ABRIDGED_DATA_DIR=os.path.join(self.home.name, "data"))
        self.process = subprocess.Popen([os.environ.get("ABRIDGED_BIN", "abridged"), "serve"], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0
        self.call("initialize", protocolVersion=1)

    def call(self, method, **params):
        self.last += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            frame = json.loads(line)
            if frame.get("id") == self.last:
                if "error" in frame:
                    raise RuntimeError(f"{method}: {frame['error']}")
                return frame["result"]
        raise RuntimeError(f"the daemon ended in {method}")

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.home.cleanup()


def why_not(value, kind, place):
    """The reason for which a value is not of a type, or None."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, object):
        return None
    if origin in (Required, NotRequired, typing.Required, typing.NotRequired) or origin is typing.Annotated:
        return why_not(value, arguments[0], place)
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        reasons = [why_not(value, one, place) for one in arguments]
        if None in reasons:
            return None
        # The deepest reason is that of the member which was meant.
        return max(filter(None, reasons), key=lambda reason: reason.split(":")[0].count("."))
    if origin is typing.Literal:
        return None if value in arguments else f"{place}: {value!r} is none of {arguments}"
    if is_typeddict(kind):
        if not isinstance(value, dict):
            return f"{place}: no object"
        hints = get_type_hints(kind, include_extras=True)
        # The kind of a member tells more than its other fields.
        for name in sorted(value, key=lambda name: name not in ("type", "role")):
            if name not in hints:
                return f"{place}.{name}: unknown to {kind.__name__}"
            if reason := why_not(value[name], hints[name], f"{place}.{name}"):
                return reason
        missing = [name for name, hint in hints.items() if typing.get_origin(hint) in (Required, typing.Required) and name not in value]
        return f"{place}: without {missing}" if missing else None
    if origin in (list, Iterable, Sequence) or kind in (list, Iterable):
        if not isinstance(value, list):
            return f"{place}: no list"
        reasons = (why_not(one, arguments[0], f"{place}.{at}") for at, one in enumerate(value))
        return next(filter(None, reasons), None)
    if origin is dict or kind is dict:
        return None if isinstance(value, dict) else f"{place}: no object"
    if kind is type(None):
        return None if value is None else f"{place}: not null"
    if isinstance(kind, type) and kind in (str, int, float, bool):
        fits = isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))
        return None if fits else f"{place}: no {kind.__name__}"
    return None if isinstance(kind, type) and isinstance(value, kind) else f"{place}: no {kind}"


def held(value, kind, what):
    # OpenAI takes an answer of a client without the id and the status that the type of its own answers has.
    for item in value["input"] if isinstance(value.get("input"), list) else []:
        if item.get("role") == "assistant":
            item.setdefault("id", "msg_1")
            item.setdefault("status", "completed")
    if reason := why_not(value, kind, "body"):
        raise SystemExit(f"{what}: {reason}\n{json.dumps(value, indent=1)[:4000]}")


def conversation(turns):
    """Messages of a host in Anthropic's format: thinking, calls with results, images."""
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    for at in range(turns):
        text = {"type": "text", "text": f"Request {at}: " + "look at the parser again. " * 60}
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}}
        yield {"role": "user", "content": [text, image] if at % 3 == 0 else [text]}
        yield {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": f"t{at}", "name": "shell", "input": {"command": "ls"}}], "stop_reason": "tool_use"}
        yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{at}", "content": "a.rs " * 200}]}
        yield {"role": "assistant", "content": [{"type": "text", "text": f"Answer {at}."}], "stop_reason": "end_turn"}


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    of_anthropic = {"provider": "anthropic", "id": MODEL, "api": "anthropic", "baseUrl": url, "contextWindow": 100000}
    newer, older = ({"provider": "openai", "id": id, "api": "openai_responses", "baseUrl": url + "/v1", "contextWindow": 100000}
                    for id in ("gpt-5.2", "gpt-5"))
    daemon = Daemon({"defaultModel": f"anthropic/{MODEL}", "models": [of_anthropic, newer, older],
                     "compaction": {"enabled": False}})
    checked = 0
    tools = [{"name": "shell", "description": "Runs a command.", "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}}}]
    for model, format, api in [(f"anthropic/{MODEL}", "anthropic", anthropic_params.MessageCreateParamsNonStreaming),
                               ("openai/gpt-5.2", "openai_responses", response_create_params.ResponseCreateParamsNonStreaming),
                               ("openai/gpt-5", "openai_responses", response_create_params.ResponseCreateParamsNonStreaming)]:
        for level in ("off", "high"):
            session = daemon.call("session/new", cwd="/project", model=model, systemPrompt="Be brief.", tools=tools,
                                  thinkingLevel=level)["session"]["sessionId"]
            for round in range(2):
                for message in conversation(6):
                    daemon.call("session/append", sessionId=session, format="anthropic", messages=[message])
                body = daemon.call("session/context", sessionId=session, format=format)["body"]
                held(body, api, f"{model} {level}, round {round}")
                result = daemon.call("session/compact", sessionId=session, keepRecentTokens=600, wait=True)
                if result["result"]["method"] != "provider_native":
                    raise SystemExit(f"{model}: {json.dumps(result, indent=1)}")
                body = daemon.call("session/context", sessionId=session, format=format)["body"]
                held(body, api, f"{model} {level}, after compaction {round}")
                checked += 2
    daemon.end()
    for path, headers, body in asked:
        if path.endswith("/messages"):
            held(body, anthropic_params.MessageCreateParamsStreaming, "sent to Anthropic")
            if "compaction" in body and "compact-2026-09-04" not in headers.get("anthropic-beta", ""):
                raise SystemExit(f"a compaction without its beta: {headers}")
        elif path.endswith("/compact"):
            held(body, response_compact_params.ResponseCompactParams, "sent to /responses/compact")
        else:
            held(body, response_create_params.ResponseCreateParamsStreaming, "sent to OpenAI")
        checked += 1
    print(f"sdk: ok, {checked} bodies under anthropic {anthropic.__version__} and openai {openai.__version__}")


main()
