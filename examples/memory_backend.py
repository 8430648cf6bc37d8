"""Compacts a session file with facts of a memory: a hook adds those that no summary has, and stores how many it has told.

Usage: memory_backend.py FILE MEMORY [ABRIDGED], where MEMORY is a text file with a fact on each line
"""
import itertools, json, subprocess, sys

FILE, MEMORY, ABRIDGED = [*sys.argv[1:], "abridged"][:3]
daemon = subprocess.Popen([ABRIDGED, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ids = itertools.count(1)

def send(**frame):
    daemon.stdin.write(json.dumps({"jsonrpc": "2.0"} | frame).encode() + b"\n")
    daemon.stdin.flush()

def call(method, **params):
    """Sends a request and returns its result. Requests of the daemon are answered meanwhile."""
    request = next(ids)
    send(id=request, method=method, params=params)
    for frame in map(json.loads, daemon.stdout):
        if frame.get("id") == request and "method" not in frame:
            if "error" in frame:
                raise RuntimeError(frame["error"]["data"]["code"], frame["error"]["message"])
            return frame["result"]
        if "method" in frame and "id" in frame:
            answer(frame)

def answer(asked):
    """Answers a request of the daemon. With an error the compaction goes on without the hook."""
    try:
        send(id=asked["id"], result=HOOKS[asked["method"]](asked["params"]))
    except Exception as error:
        send(id=asked["id"], error={"code": -32603, "message": repr(error)})

def compacting(asked):
    """Adds the facts that are new since the compaction whose data comes back."""
    facts = open(MEMORY, encoding="utf-8").read().splitlines()
    told = asked.get("previousPreserveData", {}).get("memoryBackend", {}).get("told", 0)
    context = [f"Known to the user's memory: {fact}" for fact in facts[told:]]
    return {"context": context, "preserveData": {"memoryBackend": {"told": len(facts)}}}

HOOKS = {"hook/session_compacting": compacting}
call("initialize", capabilities={"hooks": {"events": list(HOOKS), "timeoutMs": 5000}})
session = call("session/load", path=FILE)["session"]["sessionId"]
try:
    end = call("session/compact", sessionId=session, keepRecentTokens=2000, wait=True)
    print(end["outcome"], json.dumps(end.get("result") or end.get("error")))
except RuntimeError as error:
    print("refused", *error.args)
daemon.communicate()
