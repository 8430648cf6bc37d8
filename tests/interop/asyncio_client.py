"""abridged from Python's asyncio: one JSON text a line over a child's pipes, nothing but the standard library."""

import asyncio
import itertools
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE


class Abridged:
    """A daemon of our own. `on_event` is called with the params of each `session/event`, in their order; `complete` is a
    coroutine function that runs a model for the params of `llm/complete`."""

    def __init__(self, process, on_event, complete):
        self.process, self.on_event, self.complete = process, on_event, complete
        self.ids, self.waiting, self.asked = itertools.count(1), {}, {}
        self.reading = asyncio.create_task(self.read())

    @classmethod
    async def start(cls, on_event, complete, env=None):
        # The default limit of 64 KiB a line is enough: an event stays under 60 KiB, and long answers are asked for in
        # pages. Whoever wants more in one answer, a full context say, gives `limit=` here.
        program = os.environ.get("ABRIDGED_BIN", "abridged")
        process = await asyncio.create_subprocess_exec(program, "serve", stdin=PIPE, stdout=PIPE, env=env)
        self = cls(process, on_event, complete)
        await self.call("initialize", protocolVersion=1, clientInfo={"name": "asyncio", "version": "1"},
                        processId=os.getpid(), capabilities={"llm": {}})
        return self

    async def call(self, method, **params):
        id = next(self.ids)
        self.waiting[id] = answer = asyncio.get_running_loop().create_future()
        self.send(id=id, method=method, params=params)
        try:
            return await answer
        except asyncio.CancelledError:
            # Whoever stops waiting, by cancel() or a timeout, takes the request back.
            self.send(method="$/cancelRequest", params={"id": id})
            raise

    def send(self, **frame):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | frame, ensure_ascii=False).encode() + b"\n")

    async def read(self):
        try:
            async for line in self.process.stdout:
                frame = json.loads(line)
                if "method" in frame and "id" in frame:
                    # Not awaited: models take their time, and events and other requests come meanwhile.
                    task = asyncio.create_task(self.answer(frame))
                    self.asked[frame["id"]] = task
                    task.add_done_callback(lambda _, id=frame["id"]: self.asked.pop(id))
                elif "method" in frame:
                    if frame["method"] == "session/event":
                        self.on_event(frame["params"])
                    elif frame["method"] == "$/cancelRequest" and frame["params"]["id"] in self.asked:
                        self.asked[frame["params"]["id"]].cancel()
                elif not (answer := self.waiting.pop(frame["id"])).done():
                    if "error" in frame:
                        answer.set_exception(RuntimeError(frame["error"]["message"]))
                    else:
                        answer.set_result(frame["result"])
        finally:
            # Nobody answers any more, so nobody may wait any more.
            for answer in self.waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("the daemon is gone"))

    async def answer(self, request):
        if request["method"] != "llm/complete":
            return self.send(id=request["id"], error={"code": -32601, "message": "no such request"})
        try:
            self.send(id=request["id"], result={"message": await self.complete(request["params"])})
        except Exception as error:
            # The daemon goes on to the next model, or to the summary that needs none.
            self.send(id=request["id"], error={"code": -32603, "message": str(error)})

    async def end(self):
        await self.call("shutdown")
        self.send(method="exit")
        await self.reading
        return await self.process.wait()


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
    await asyncio.sleep(0)
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
    daemon = await Abridged.start(on_event, complete, env)
    session = (await daemon.call("session/new", cwd=home))["session"]["sessionId"]
    for number in range(80):
        await daemon.call("session/append", sessionId=session, messages=turn(number))

    # What is long comes in pages, each well under the limit of a line, as long as no single entry is over it.
    entries, cursor = [], None
    while cursor or not entries:
        page = await daemon.call("session/entries", sessionId=session, since=cursor, maxBytes=30_000)
        entries, cursor = entries + page["entries"], page["nextCursor"]
    check(sum(entry["type"] == "message" for entry in entries) == 160, "the pages do not hold the 160 messages")

    # Cancelled by its session: the cancel is sent right behind it.
    await daemon.call("session/append", sessionId=session, messages=[LARGE])
    compacting, cancelling = await asyncio.gather(
        daemon.call("session/compact", sessionId=session), daemon.call("session/cancel", sessionId=session))
    check(cancelling["cancelled"] == [compacting | {"kind": "compaction"}], f"cancelled was {cancelling}")
    check((await end_of(compacting["operationId"]))["outcome"] == "cancelled", "a cancelled compaction went on")

    # Cancelled by taking the request back.
    await daemon.call("session/append", sessionId=session, messages=[LARGE])
    compacting = asyncio.create_task(daemon.call("session/compact", sessionId=session, wait=True))
    await asyncio.sleep(0)
    compacting.cancel()
    await asyncio.wait([compacting])
    status = await daemon.call("session/status", sessionId=session)
    check(status["session"]["status"]["type"] == "idle" and not status["operations"], f"it goes on: {status}")

    # Done: the answer gives the id, the end is an event.
    for number in range(80, 100):
        appended = await daemon.call("session/append", sessionId=session, messages=turn(number))
    check(appended["usage"]["contextTokens"] >= 9950, "the provider's count is not taken over")
    operation = (await daemon.call("session/compact", sessionId=session, keepRecentTokens=2000))["operationId"]
    end = await end_of(operation)
    check(end["outcome"] == "completed", f"the compaction ended with {end}")
    context = await daemon.call("session/context", sessionId=session)
    check(context["compactionEntryId"] == end["result"]["entryId"], "the context is not the compacted one")
    check(context["messages"][-1]["content"] == turn(99)[-1]["content"], "the newest answer is not as it was")

    # A file from elsewhere opens where it lies.
    path = f"{home}/elsewhere.jsonl"
    with open(path, "w") as file:
        head = {"type": "session", "version": 3, "id": "elsewhere", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"}
        file.write(json.dumps(head) + "\n")
    other = (await daemon.call("session/load", path=path))["session"]["sessionId"]
    await daemon.call("session/append", sessionId=other, messages=turn(1))

    # A session whose model only we can run: its summary is asked of us.
    ours = (await daemon.call("session/new", cwd=home, model="editor/writer"))["session"]["sessionId"]
    for number in range(20):
        await daemon.call("session/append", sessionId=ours, messages=turn(number))
    answer = await daemon.call("session/compact", sessionId=ours, keepRecentTokens=1000, wait=True)
    result = answer["result"]
    check(result["method"] == "llm" and not result["rejected"], f"no summary of ours: {result}")
    check("Go through the steps." in result["summary"], f"another summary than ours: {result['summary']}")
    check(result["shortSummary"] == SUMMARIES["short_summary"], f"another short one: {result['shortSummary']}")
    spent = (await daemon.call("session/entries", sessionId=ours, types=["usage"]))["entries"]
    check({entry["purpose"] for entry in spent} >= {"compaction", "short_summary"}, f"its cost is not noted: {spent}")

    check(await daemon.end() == 0, "the daemon did not end well")
    check_events(events, session, [operation, answer["operationId"]])
    print(f"asyncio: ok, {len(events)} events")


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
        sys.exit(f"asyncio: {what}")


with tempfile.TemporaryDirectory() as home:
    asyncio.run(asyncio.wait_for(main(home), 60))
