"""The real clients go on with written sessions: Claude Code and Codex ask a model on the loopback, and OpenCode imports its file."""

import http.server
import json
import shutil
import subprocess
import threading

from plans import canonical

PROGRAMS = {"claude-code": "claude", "codex": "codex", "opencode": "opencode"}
CODEX_CONFIG = """
model = "gpt-5"
model_provider = "loopback"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.loopback]
name = "loopback"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "LOOPBACK_KEY"
[analytics]
enabled = false
"""


class Silent(Exception):
    """A client does not end, or asks nothing."""


class Handler(http.server.BaseHTTPRequestHandler):
    """A model that says one word, in the protocols of Anthropic and OpenAI."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def value(self, value):
        self.answer("application/json", json.dumps(value).encode())

    def events(self, *events):
        self.answer("text/event-stream", "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode())

    def do_GET(self):
        self.value({"data": [], "models": []})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.startswith("/v1/messages") and "count_tokens" not in self.path:
            self.anthropic(json.loads(raw))
        elif self.path.startswith("/v1/responses"):
            self.openai(json.loads(raw))
        else:
            self.value({"input_tokens": 1})

    def anthropic(self, asked):
        # Requests without tools are for titles.
        if asked.get("tools"):
            self.server.asked.append(asked)
        usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None, "usage": usage}
        text = {"type": "text", "text": "Done."}
        if not asked.get("stream"):
            return self.value({**message, "content": [text], "stop_reason": "end_turn"})
        self.events(
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text["text"]}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        )

    def openai(self, asked):
        self.server.asked.append(asked)
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        self.events(
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
        )


class Clients:
    """The clients that are installed, with a model for them."""

    def __init__(self, home):
        self.programs = {target: path for target, name in PROGRAMS.items() if (path := shutil.which(name))}
        if not self.programs:
            raise SystemExit(f"importers: --clients needs one of {', '.join(PROGRAMS.values())} on PATH")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.asked = []
        port = self.server.server_port
        config = home / ".codex/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(CODEX_CONFIG.format(port=port))
        self.env = {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "none", "LOOPBACK_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def run(self, target, arguments, env, cwd):
        command = [self.programs[target], *arguments]
        # A client that runs inside of another one behaves otherwise.
        env = {name: value for name, value in {**env, **self.env}.items() if not name.startswith("CLAUDECODE")}
        try:
            return subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired as error:
            raise Silent(str(error)) from error

    def resumed(self, target, session, env, cwd):
        """The facts of the first request of a client that goes on with a session."""
        arguments = {
            "claude-code": ["-p", "--resume", session, "Go on."],
            "codex": ["exec", "--skip-git-repo-check", "resume", session, "Go on."],
        }
        self.server.asked.clear()
        said = self.run(target, arguments[target], env, cwd)
        if not self.server.asked:
            raise Silent(f"{target} asks nothing: {said.stdout[-300:]} {said.stderr[-300:]}")
        asked = self.server.asked[0]
        return list(of_messages(asked["messages"]) if target == "claude-code" else of_items(asked["input"]))


def text_of(content):
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content or [] if "text" in block)


def of_messages(messages):
    """The facts of a request to Anthropic."""
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "text":
                    yield message["role"], block["text"]
                case "tool_use":
                    yield "call", block["id"], block["name"], canonical(block["input"])
                case "tool_result":
                    yield "result", block["tool_use_id"], text_of(block.get("content")), bool(block.get("is_error"))


def of_items(items):
    """The facts of a request to OpenAI."""
    for item in items:
        match item.get("type", "message"):
            case "message":
                yield from ((item["role"], block["text"]) for block in item["content"] if "text" in block)
            case "function_call":
                yield "call", item["call_id"], item["name"], canonical(json.loads(item["arguments"]))
            case "function_call_output":
                yield "result", item["call_id"], text_of(item["output"]), False
