"""A host with an agent loop of its own: it runs the model and the tools, and abridged keeps the session in the window.

Usage: host_loop.py BASE_URL MODEL WINDOW [ABRIDGED] < requests of the user, one a line
"""
import itertools, json, os, subprocess, sys, urllib.request

BASE_URL, MODEL, WINDOW, ABRIDGED = [*sys.argv[1:], "abridged"][:4]
NAME = {"provider": "local", "id": MODEL}
SETTINGS = {"models": [NAME | {"api": "openai_chat", "baseUrl": BASE_URL, "contextWindow": int(WINDOW)}]}
READ = {"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}
daemon = subprocess.Popen([ABRIDGED, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ids = itertools.count(1)

def call(method, **params):
    """Sends a request to the daemon and returns its result. The events before the answer are skipped."""
    request = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}
    daemon.stdin.write(json.dumps(request).encode() + b"\n")
    daemon.stdin.flush()
    answer = next(frame for frame in map(json.loads, daemon.stdout) if frame.get("id") == request["id"])
    if "error" in answer:
        raise RuntimeError(answer["error"]["data"]["code"], answer["error"]["message"])
    return answer["result"]

def ask(body):
    """Sends a request to the provider and returns its answer, or its error, as an assistant message."""
    url, headers = f"{BASE_URL}/chat/completions", {"content-type": "application/json"}
    try:
        answer = json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
    except OSError as error:
        text = f"{error}: {error.read().decode()}" if hasattr(error, "read") else str(error)
        return {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": text}
    said, reason = answer["choices"][0]["message"], answer["choices"][0]["finish_reason"]
    content = [{"type": "text", "text": said.get("content") or ""}]
    for tool in said.get("tool_calls") or []:
        name, arguments = tool["function"]["name"], json.loads(tool["function"]["arguments"])
        content.append({"type": "toolCall", "id": tool["id"], "name": name, "arguments": arguments})
    usage = {"input": answer["usage"]["prompt_tokens"], "output": answer["usage"]["completion_tokens"]}
    stop = {"tool_calls": "toolUse", "length": "length"}.get(reason, "stop")
    return {"role": "assistant", "content": content, "usage": usage, "stopReason": stop}

def turn(request):
    """Runs the model and its tools until an answer calls no tool, and returns the text of that answer."""
    messages, again = [{"role": "user", "content": request}], False
    while messages or again:
        if not again:
            call("session/append", sessionId=session, messages=messages)
        answer = ask(call("session/context", sessionId=session, format="openai_chat")["body"])
        again = call("session/append", sessionId=session, messages=[answer])["next"].get("willRetry")
        calls = [block for block in answer["content"] if block["type"] == "toolCall" and not again]
        messages = [{"role": "toolResult", "toolCallId": it["id"], "content": "3 lines"} for it in calls]
    return answer.get("errorMessage") or answer["content"][0]["text"]

call("initialize", protocolVersion=1)
session = call("session/new", cwd=os.getcwd(), model=NAME, tools=[READ], settings=SETTINGS)["session"]["sessionId"]
for line in sys.stdin:
    try:
        print(turn(line.strip()))
    except (RuntimeError, LookupError, ValueError) as error:
        print("no answer:", *error.args)
daemon.communicate()
