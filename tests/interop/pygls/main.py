"""abridged from pygls' client: Content-Length frames on asyncio."""

import asyncio
import json
import os
import sys
import tempfile

from lsprotocol.converters import get_converter
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException


class Abridged(JsonRPCClient):
    """A daemon of our own."""

    async def server_exit(self, server):
        self.exit_code = server.returncode


async def start(on_event, complete, env=None):
    """Starts a daemon; `on_event` is called with the params of each `session/event`, in their order, and the coroutine
    function `complete` runs a model for the params of `llm/complete`."""
    # By its own converter pygls makes named tuples of all objects, at any depth, and changes keys that are no names of
    # Python; without it they stay dicts, and a message can be given back as it came.
    client = Abridged(converter_factory=get_converter)
    client.feature("session/event")(on_event)

    # What it raises is answered as an error, and the daemon goes on without us.
    @client.feature("llm/complete")
    async def answer(params):
        return {"message": await complete(params)}

    await client.start_io(os.environ.get("ABRIDGED_BIN", "abridged"), "serve", env=env)
    await call(client, "initialize", protocolVersion=1, clientInfo={"name": "pygls", "version": "2"},
               processId=os.getpid(), capabilities={"llm": {}})
    return client


async def call(client, method, **params):
    return await client.protocol.send_request_async(method, params)


async def end(client):
    await call(client, "shutdown")
    client.protocol.notify("exit")
    await client.stop()
    return client.exit_code


def turn(number):
    """A question and its answer, as a host with its own agent loop reports them."""
    text = "x" * 45_000 if number == 50 else f"Step {number}: Größe, 東京 and 🚢 stay as they are. " * 10
    usage = {"input": 100 * number, "output": 50, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 100 * number + 50}
    answer = {"role": "assistant", "content": [{"type": "text", "text": text}], "usage": usage, "stopReason": "stop"}
    return [{"role": "user", "content": f"What is step {number}?"}, answer]


SUMMARIES = {
    "compaction": "## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones",
    "turn_prefix": "## Original Request\nThe next step.\n\n## Early Progress\n- begun",
    "short_summary": "The first steps are done. More will come.",
}


async def complete(params):
    """Runs a model; this one writes summaries and nothing else."""
    check(params["model"] == {"provider": "editor", "id": "writer"}, f"another model is asked: {params['model']}")
    said = params["messages"][0]["content"][0]["text"]
    check("Step 1: " in said or params["purpose"] != "compaction", "the conversation does not come with the request")
    # What the provider reported; left out where nobody knows. Much less than was sent would mean that it was cut.
    read = len(params["system"] + said) // 3
    usage = {"input": read, "output": 40, "cacheRead": 0, "cacheWrite": 0, "totalTokens": read + 40}
    text = [{"type": "text", "text": SUMMARIES[params["purpose"]]}]
    return {"role": "assistant", "content": text, "usage": usage, "stopReason": "stop"}


# Its tokens take a while to count, and a compaction waits for that: long enough to change one's mind.
LARGE = {"role": "user", "content": "Größe, 東京, 🚢\n" * 200_000}


async def main(home):
    events, ends = [], {}

    def end_of(operation):
        # Made by whoever comes first: the reader may run on and see an end before the answer that names it is awaited.
        return ends.setdefault(operation, asyncio.get_running_loop().create_future())

    def on_event(params):
        events.append(params)
        if params["event"]["type"] == "compaction_end":
            end_of(params["operationId"]).set_result(params["event"])

    env = os.environ | {"ABRIDGED_DATA_DIR": f"{home}/data", "ABRIDGED_CONFIG_DIR": f"{home}/config",
                        "ABRIDGED_DISABLE_AUTOCOMPACT": "1"}
    client = await start(on_event, complete, env)
    session = (await call(client, "session/new", cwd=home))["session"]["sessionId"]
    for number in range(80):
        await call(client, "session/append", sessionId=session, messages=turn(number))

    # Cancelled by its session: the cancel is sent right behind it.
    await call(client, "session/append", sessionId=session, messages=[LARGE])
    compacting, cancelling = await asyncio.gather(
        call(client, "session/compact", sessionId=session), call(client, "session/cancel", sessionId=session))
    check(cancelling["cancelled"] == [compacting | {"kind": "compaction"}], f"cancelled was {cancelling}")
    check((await end_of(compacting["operationId"]))["outcome"] == "cancelled", "a cancelled compaction went on")

    # Cancelled by taking the request back. That is a notification with an id of ours: cancelling the future would tell
    # the daemon nothing, and pygls would stumble over the answer.
    await call(client, "session/append", sessionId=session, messages=[LARGE])
    waiting = client.protocol.send_request_async("session/compact", {"sessionId": session, "wait": True}, msg_id="mine")
    client.protocol.notify("$/cancelRequest", {"id": "mine"})
    try:
        outcome = (await waiting)["outcome"]
    except JsonRpcException as error:
        outcome = error.code
    # The normal answer of a compaction that was cancelled, or, where it had not begun, an error.
    check(outcome in ("cancelled", -32800), f"what was taken back ended as {outcome}")

    # Done: the answer gives the id, the end is an event.
    for number in range(80, 100):
        appended = await call(client, "session/append", sessionId=session, messages=turn(number))
    check(appended["usage"]["contextTokens"] >= 9950, "the provider's count is not taken over")
    operation = (await call(client, "session/compact", sessionId=session, keepRecentTokens=2000))["operationId"]
    completed = await end_of(operation)
    check(completed["outcome"] == "completed", f"the compaction ended with {completed}")
    context = await call(client, "session/context", sessionId=session)
    check(context["compactionEntryId"] == completed["result"]["entryId"], "the context is not the compacted one")
    check(context["messages"][-1]["content"] == turn(99)[-1]["content"], "the newest answer is not as it was")

    # A file from elsewhere opens where it lies.
    path = f"{home}/elsewhere.jsonl"
    with open(path, "w") as file:
        head = {"type": "session", "version": 3, "id": "elsewhere", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"}
        file.write(json.dumps(head) + "\n")
    other = (await call(client, "session/load", path=path))["session"]["sessionId"]
    await call(client, "session/append", sessionId=other, messages=turn(1))

    # A session whose model only we can run: its summary is asked of us.
    ours = (await call(client, "session/new", cwd=home, model="editor/writer"))["session"]["sessionId"]
    for number in range(20):
        await call(client, "session/append", sessionId=ours, messages=turn(number))
    answer = await call(client, "session/compact", sessionId=ours, keepRecentTokens=1000, wait=True)
    result = answer["result"]
    check(result["method"] == "llm" and not result["rejected"], f"no summary of ours: {result}")
    check("Go through the steps." in result["summary"], f"another summary than ours: {result['summary']}")
    check(result["shortSummary"] == SUMMARIES["short_summary"], f"another short one: {result['shortSummary']}")
    spent = (await call(client, "session/entries", sessionId=ours, types=["usage"]))["entries"]
    check({entry["purpose"] for entry in spent} >= {"compaction", "short_summary"}, f"its cost is not noted: {spent}")

    check(await end(client) == 0, "the daemon did not end well")
    check_events(events, session, [operation, answer["operationId"]])
    print(f"pygls: ok, {len(events)} events")


def check_events(events, session, completed):
    last, open_operations, ends = {}, set(), []
    for params in events:
        key = params["sessionId"], params["epoch"]
        check(params["seq"] == last.get(key, params["seq"] - 1) + 1, f"a gap before {params}")
        last[key] = params["seq"]
        if params["event"]["type"] == "compaction_start":
            open_operations.add(params["operationId"])
        elif params["event"]["type"] == "compaction_end":
            check(params["operationId"] in open_operations, f"an end without its start, or a second one: {params}")
            open_operations.remove(params["operationId"])
            ends.append((params["operationId"], params["event"]["outcome"]))
    check(not open_operations, f"starts without an end: {open_operations}")
    check(len(last) == 3, f"events of three sessions, not of {last}")
    # The request that was taken back ends as cancelled, or never began.
    check([outcome for _, outcome in ends] in (["cancelled"] * n + ["completed"] * 2 for n in (1, 2)), f"ends: {ends}")
    check([operation for operation, _ in ends[-2:]] == completed, "other compactions were completed")
    types = [params["event"]["type"] for params in events if params["sessionId"] == session]
    check(types[-2:] == ["status_changed", "settled"], f"the last events are {types[-2:]}")
    entries = [params["event"] for params in events if params["event"]["type"] == "entry_appended"]
    check(sum("x" * 45_000 in json.dumps(event) for event in entries) == 1, "45,000 characters did not come as a whole")
    check(sum("entry" not in event for event in entries) == 2, "the large ones are not announced by their type")


def check(holds, what):
    if not holds:
        sys.exit(f"pygls: {what}")


with tempfile.TemporaryDirectory() as home:
    asyncio.run(asyncio.wait_for(main(home), 60))
