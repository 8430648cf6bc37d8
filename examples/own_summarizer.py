"""Compacts a session file with a summary of its own: a hook writes it, and no model is asked.

Usage: own_summarizer.py FILE [ABRIDGED]
"""
import itertools, json, subprocess, sys

FILE, ABRIDGED = [*sys.argv[1:], "abridged"][:2]
daemon = subprocess.Popen([ABRIDGED, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ids, answers = itertools.count(1), {}

def send(**frame):
    daemon.stdin.write(json.dumps({"jsonrpc": "2.0"} | frame).encode() + b"\n")
    daemon.stdin.flush()

def call(method, **params):
    """Sends a request and returns its result. Requests of the daemon are answered meanwhile, also inside of a hook."""
    request = next(ids)
    send(id=request, method=method, params=params)
    while request not in answers:
        frame = json.loads(daemon.stdout.readline())
        if "method" in frame and "id" in frame:
            answer(frame)
        elif "id" in frame:
            answers[frame["id"]] = frame
    frame = answers.pop(request)
    if "error" in frame:
        raise RuntimeError(frame["error"]["data"]["code"], frame["error"]["message"])
    return frame["result"]

def answer(asked):
    """Answers a request of the daemon. With an error the compaction goes on without the hook."""
    try:
        send(id=asked["id"], result=HOOKS[asked["method"]](asked["params"]))
    except Exception as error:
        send(id=asked["id"], error={"code": -32603, "message": repr(error)})

# The hook: about 25 lines.
def messages(session, span):
    """The messages of a range, read from the daemon while the hook is asked."""
    page = [call("session/entry", sessionId=session, entryId=span["firstEntryId"])["entry"]] if span["count"] else []
    while page:
        for entry in page:
            if entry["type"] == "message":
                yield entry["message"]
            if entry["id"] == span["lastEntryId"]:
                return
        page = call("session/entries", sessionId=session, since=page[-1]["id"])["entries"]

def text(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(block.get("text", "") for block in content).strip()

def before_compact(asked):
    plan = asked["preparation"]
    lines = (plan["previousSummary"] or "The requests of the user so far:").splitlines()
    for span in plan["messagesToSummarize"], plan["turnPrefixMessages"]:
        for message in messages(asked["sessionId"], span):
            if message["role"] == "user":
                lines.append(f"- {text(message)[:200]}")
    summary = "\n".join(lines[:1] + lines[1:][-100:])
    details = {"modified": plan["fileOps"]["modified"]}
    return {"action": "replace", "compaction": {"summary": summary, "details": details}}

HOOKS = {"hook/session_before_compact": before_compact}
call("initialize", capabilities={"hooks": {"events": list(HOOKS)}})
session = call("session/load", path=FILE)["session"]["sessionId"]
try:
    end = call("session/compact", sessionId=session, keepRecentTokens=2000, wait=True)
    print(end["outcome"], json.dumps(end.get("result") or end.get("error")))
except RuntimeError as error:
    print("refused", *error.args)
daemon.communicate()
