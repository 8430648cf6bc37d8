"""LangChain's create_agent against a loopback model with a window of 14,000 tokens, with and without the middleware."""

import asyncio
import base64
import http.server
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

import abridged
from abridged.langchain import AbridgedMiddleware

README = pathlib.Path(__file__).resolve().parents[3] / "clients" / "python" / "README.md"
WINDOW = 14_000
STEPS = 30
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
REQUEST = "Read every file. The answer has to name the harbour of file 3, in capital letters, and nothing else."
SUMMARY = "## Goal\nRead every file.\n\n## Progress\n### Done\n- [x] file 3: the harbour is Ningbo"


def check(holds, problem):
    if not holds:
        sys.exit(f"python: {problem}")


def tokens(body):
    """The size of a request, by another count than that of the daemon."""
    text = re.sub(r"data:image/[^\"]*", "", json.dumps([body["messages"], body.get("tools")]))
    return len(re.findall(r"\w{1,5}|[^\w\s]", text))


def fault(messages):
    """What a provider refuses in a list of messages."""
    calls = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in calls:
                return "a result without its call"
            calls.remove(message["tool_call_id"])
        elif calls:
            return "a call without its result"
        calls += [call["id"] for call in message.get("tool_calls") or []]
    return "a call without its result" if calls else None


class Model(http.server.ThreadingHTTPServer):
    """A model that reads files until it has read enough. It also writes summaries."""

    def __init__(self, steps=STEPS):
        super().__init__(("127.0.0.1", 0), Handler)
        self.steps, self.asked, self.refused, self.summaries, self.failures = steps, [], 0, 0, 0
        self.address = f"http://127.0.0.1:{self.server_address[1]}/v1"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def chat(self):
        return ChatOpenAI(model="loop", base_url=self.address, api_key="none", max_retries=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        model, body = self.server, json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body["model"] == "writer":
            model.summaries += 1
            return self.message({"role": "assistant", "content": SUMMARY}, len(json.dumps(body)) // 4)
        if problem := fault(body["messages"]):
            return self.answer(400, {"error": {"message": problem, "code": "invalid", "type": "invalid_request_error"}})
        size = tokens(body)
        if size > WINDOW:
            model.refused += 1
            text = f"This model's maximum context length is {WINDOW} tokens, and the request has {size}."
            return self.answer(400, {"error": {"message": text, "code": "context_length_exceeded", "type": "invalid_request_error"}})
        if model.failures:
            model.failures -= 1
            return self.answer(500, {"error": {"message": "overloaded", "type": "server_error"}})
        model.asked.append(body)
        number = len(model.asked)
        if number % (model.steps + 1) == 0:
            return self.message({"role": "assistant", "content": "NINGBO"}, size)
        # Two files at once, now and then.
        files = [number * 10 + n for n in range(1 + (number % 5 == 0))]
        calls = [{"id": f"call-{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"number": n})}} for n in files]
        self.message({"role": "assistant", "content": None, "tool_calls": calls}, size)

    def message(self, message, size):
        usage = {"prompt_tokens": size, "completion_tokens": 20, "total_tokens": size + 20}
        self.answer(200, {"id": "c", "object": "chat.completion", "created": 1, "model": "loop", "usage": usage,
                          "choices": [{"index": 0, "finish_reason": "tool_calls" if "tool_calls" in message else "stop", "message": message}]})

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@tool
def read(number: int) -> list:
    """Reads a file."""
    text = "".join(f"Line {line} of file {number}: berth {number * line % 97} is free, tide {line}. " for line in range(50))
    return [{"type": "text", "text": text}, {"type": "image", "base64": PICTURE, "mime_type": "image/png"}][: 2 if number % 40 == 0 else 1]


class Watch(AgentMiddleware):
    """Looks at what comes out of the middleware before it: kept messages are those of the state, the same objects."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def wrap_model_call(self, request, handler):
        known = {id(message) for message in request.state["messages"]}
        self.kept.append([id(message) in known for message in request.messages])
        return handler(request)

    async def awrap_model_call(self, request, handler):
        return await handler(request)


def run(model, *middleware, messages=(REQUEST,), tools=(read,), **options):
    agent = create_agent(model.chat(), tools=list(tools), system_prompt="You read files.", middleware=list(middleware), **options)
    return agent.invoke({"messages": [HumanMessage(text) for text in messages]}, {"recursion_limit": 1000})


def finished(model, state):
    check(state["messages"][-1].text == "NINGBO", f"the agent ends with {state['messages'][-1].text}")
    check(len(model.asked) % (STEPS + 1) == 0, f"{len(model.asked)} requests")
    check(sum(isinstance(message, AIMessage) for message in state["messages"]) == len(model.asked), "the history is not whole")


def is_summarized(body):
    return "<summary>" in json.dumps(body["messages"][1])


def without():
    with Model() as model:
        try:
            run(model)
        except ModelInvalidRequestError as error:
            check("maximum context length" in str(error), f"another error: {error}")
            return check(model.refused == 1 and len(model.asked) < STEPS, "the model refused something else")
        check(False, "without the middleware the agent does not overflow")


def with_it():
    with Model() as model:
        watch = Watch()
        state = run(model, AbridgedMiddleware(context_window=WINDOW), watch)
        finished(model, state)
        check(model.refused == 0, f"{model.refused} requests were too long")
        check(is_summarized(model.asked[-1]) and not is_summarized(model.asked[0]), "no summary in the last request")
        sizes = [tokens(body) for body in model.asked]
        check(max(sizes) > WINDOW * 0.6, f"the window is not used: {max(sizes)}")
        summaries = {re.search("<summary>.*</summary>", json.dumps(body["messages"][1]))[0] for body in model.asked if is_summarized(body)}
        check(2 <= len(summaries) < 12, f"{len(summaries)} summaries in {STEPS} steps")
        for body in model.asked:
            check(REQUEST in json.dumps(body["messages"]), "the request of the user is not in each request in full")
        for kept in watch.kept:
            check(kept == [True] * len(kept) or kept == [False] + [True] * (len(kept) - 1), f"kept messages are copies: {kept}")
        check(not all(all(kept) for kept in watch.kept), "no message in front")
        check(any(PICTURE in json.dumps(body) for body in model.asked if is_summarized(body)), "no picture survives")


def asynchronous():
    with Model() as model:
        agent = create_agent(model.chat(), tools=[read], middleware=[AbridgedMiddleware(context_window=WINDOW), Watch()])
        finished(model, asyncio.run(agent.ainvoke({"messages": [HumanMessage(REQUEST)]}, {"recursion_limit": 1000})))


def a_wrong_window():
    """The model refuses what is said to fit. The middleware makes it smaller."""
    with Model() as model:
        finished(model, run(model, AbridgedMiddleware(context_window=200_000)))
        check(0 < model.refused < STEPS, f"{model.refused} refusals")


class Warnings(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []
        logging.getLogger("abridged").addHandler(self)

    def emit(self, record):
        self.texts.append(record.getMessage())

    def __enter__(self):
        return self.texts

    def __exit__(self, *_):
        logging.getLogger("abridged").removeHandler(self)


def failures():
    for middleware in AbridgedMiddleware(WINDOW, binary="/nowhere/abridged"), AbridgedMiddleware(WINDOW, timeout=0):
        with Warnings() as warnings, Model(steps=5) as model:
            state = run(model, middleware)
            check(state["messages"][-1].text == "NINGBO", "a daemon that is missing stops the agent")
            sent = [message["role"] for message in model.asked[-1]["messages"]]
            check(len(sent) == len(state["messages"]), f"the messages are changed: {sent}")
            check(len(warnings) == 1, f"warnings: {warnings}")
    with Warnings() as warnings, Model(steps=5) as model:
        heard = []
        run(model, AbridgedMiddleware(WINDOW, binary="/nowhere/abridged", on_error=heard.append))
        check(len(heard) == 6 and not warnings, f"on_error hears {heard}")
        check(all(isinstance(error, abridged.BinaryNotFound) for error in heard), f"on_error hears {heard}")


def daemons():
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, parent, program in rows if int(parent) == os.getpid() and program.endswith("abridged serve")]


def killed():
    """The daemon dies between two requests and within one. Neither stops the agent."""
    @tool
    def read_and_kill(number: int) -> list:
        """Reads a file."""
        if number in (200, 300):
            for daemon in daemons():
                os.kill(daemon, signal.SIGKILL if number == 200 else signal.SIGSTOP)
                if number == 300:
                    threading.Timer(0.3, os.kill, (daemon, signal.SIGKILL)).start()
        return read.func(number)

    read_and_kill.name = "read"
    with Warnings() as warnings, Model() as model:
        finished(model, run(model, AbridgedMiddleware(context_window=WINDOW), tools=[read_and_kill]))
        check(1 <= len(warnings) and "abridged ended with exit code -9" in warnings[0], f"warnings: {warnings}")
        check(model.refused == 0, "a request without the summary so far")
        check(is_summarized(model.asked[-1]), "the summary is gone with the daemon")


def checkpoints():
    """A second invoke, in another process so to speak, goes on with the summary of the first one."""
    with Model() as model:
        saver, config = InMemorySaver(), {"configurable": {"thread_id": "1"}, "recursion_limit": 1000}
        for invoke in range(2):
            agent = create_agent(model.chat(), tools=[read], middleware=[AbridgedMiddleware(context_window=WINDOW)], checkpointer=saver)
            before = agent.get_state(config).values.get("abridged")
            picture = {"type": "image", "base64": PICTURE, "mime_type": "image/png"}
            state = agent.invoke({"messages": [HumanMessage([{"type": "text", "text": f"{REQUEST} Round {invoke}."}, picture])]}, config)
            finished(model, state)
            check(bool(before) == bool(invoke), f"before invoke {invoke} the state has {before}")
            check("abridged" not in state, "the summary is in the output of the agent")
        first = model.asked[STEPS + 1]
        check(before["summary"].split("\n")[2] in json.dumps(first["messages"]).replace("\\n", "\n"), "the second invoke has another summary")
        check(sum(message["role"] == "user" for message in first["messages"]) == 3, "a summary, the old request, the new one")
        check(PICTURE in json.dumps(model.asked[-1]["messages"]), "the picture of the user is gone")


def written_by_a_model():
    """A model writes the summaries, and none is paid for twice."""
    with Model() as model:
        writer = {"provider": "loop", "id": "writer", "api": "openai_chat", "baseUrl": model.address, "contextWindow": 128_000}
        settings = {"models": [writer], "compaction": {"models": ["loop/writer"], "keepRecentTokens": 4_000}}
        saver, config = InMemorySaver(), {"configurable": {"thread_id": "1"}, "recursion_limit": 1000}
        retry = ModelRetryMiddleware(max_retries=5, initial_delay=0.0, jitter=False)
        ours = AbridgedMiddleware(context_window=WINDOW, settings=settings)
        heard = []
        ours.on_error = heard.append

        class Fail(AgentMiddleware):
            """Each request with a new summary fails twice."""

            seen = ""

            def wrap_model_call(self, request, handler):
                text = request.messages[0].text
                if "<summary>" in text and text != self.seen:
                    self.seen, model.failures = text, 2
                return handler(request)

        agent = create_agent(model.chat(), tools=[read], middleware=[retry, ours, Fail()], checkpointer=saver)
        state = agent.invoke({"messages": [HumanMessage(REQUEST)]}, config)
        finished(model, state)
        check(not heard, f"errors: {heard}")
        made = {one.values["abridged"]["through"] for one in agent.get_state_history(config) if one.values.get("abridged")}
        check("Ningbo" in agent.get_state(config).values["abridged"]["summary"], "no summary by the model")
        check(len(made) >= 2 and model.summaries <= 2 * len(made), f"{model.summaries} requests for {len(made)} summaries")


def tool_pairs():
    """The shortened form: one result is larger than the window."""
    @tool
    def huge(number: int) -> str:
        """Reads a file."""
        return "".join(f"Line {line}: berth {line % 97}. " for line in range(20_000 if number == 20 else 10))

    huge.name = "read"
    with Model() as model:
        state = run(model, AbridgedMiddleware(context_window=WINDOW), tools=[huge])
        finished(model, state)
        check(model.refused == 0, "a result larger than the window was sent")
        check(max(len(message.text) for message in state["messages"] if isinstance(message, ToolMessage)) > 400_000, "the state is changed")


def the_manual():
    """The programs of the README for agents and loops, with the loopback model in the place of OpenAI's."""
    programs = dict(re.findall(r"```python (\w+)\n(.*?)```", (README).read_text(), re.DOTALL))
    file = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}}}}
    for name, tools in ("agent", [read]), ("loop", [file]):
        with Model() as model:
            os.environ |= {"OPENAI_BASE_URL": model.address, "OPENAI_API_KEY": "none"}
            run = lambda function: read.func(**json.loads(function.arguments))[0]["text"]
            exec(programs[name], {"tools": tools, "request": REQUEST, "run": run})
            check(len(model.asked) == STEPS + 1 and model.refused == 0, f"the {name} of the README: {len(model.asked)} requests")
            check("<summary>" in json.dumps(model.asked[-1]["messages"]), f"the {name} of the README has no summary")


for test in without, with_it, asynchronous, a_wrong_window, failures, killed, checkpoints, written_by_a_model, tool_pairs, the_manual:
    test()
