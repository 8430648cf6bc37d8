"""The client against a daemon: calls, events, callbacks, errors, restarts, and the end."""

import asyncio
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import abridged

WRITER = "editor/writer"


def check(holds, problem):
    if not holds:
        sys.exit(f"python: {problem}")


def daemons():
    """The daemons that this process has started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, parent, program in rows if int(parent) == os.getpid() and program.endswith("abridged serve")]


def kill():
    (pid,) = daemons()
    os.kill(pid, signal.SIGKILL)


def stop():
    """Stops the daemon, which answers nothing from then on."""
    (pid,) = daemons()
    os.kill(pid, signal.SIGSTOP)
    while "T" not in subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout:
        time.sleep(0.01)


def turn(number):
    text = f"Step {number}: the port is {8000 + number}. " * 20
    return [{"role": "user", "content": f"What is step {number}?"}, {"role": "assistant", "content": text}]


async def raised(kind, work):
    try:
        await work
    except kind as error:
        return error
    check(False, f"no {kind.__name__}")


async def events_in_order(client):
    stream = client.events()
    session = (await client.call("session/new", cwd="/"))["session"]["sessionId"]
    other = (await client.call("session/new", cwd="/"))["session"]["sessionId"]
    # A stream that begins after an answer has all events that follow it.
    own, heard = client.events(session), []
    remove = client.on_event(heard.append, session)
    fails = client.on("session/event", lambda _: 1 / 0)  # the reader survives it
    for number in range(20):
        await client.call("session/append", sessionId=session, messages=turn(number))
        await client.call("session/append", sessionId=other, messages=turn(number))
    answer = await client.call("session/compact", sessionId=session, keepRecentTokens=500, wait=True)
    check(answer["outcome"] == "completed", f"the compaction ended with {answer}")
    seen = []
    async for event in own:
        seen.append(event)
        if event["event"]["type"] == "settled":
            break
    check([event["seq"] for event in seen] == list(range(1, len(seen) + 1)), "the events of a session have gaps")
    check({event["sessionId"] for event in seen} == {session}, "a stream has events of another session")
    check([event["event"]["type"] for event in seen].count("compaction_end") == 1, "no end of the compaction")
    check(heard[: len(seen)] == seen, "a listener hears other events than a stream")
    both = [await anext(stream) for _ in range(40)]
    check({event["sessionId"] for event in both} == {session, other}, "a stream of all has events of one session")
    remove()
    fails()
    before = len(heard)
    await client.call("session/append", sessionId=session, messages=turn(20))
    check(len(heard) == before, "a listener that was removed hears events")
    return session


async def errors(client):
    error = await raised(abridged.AbridgedError, client.call("session/status", sessionId="none"))
    check((error.code, error.rpc_code, error.retryable, error.data["kind"]) == ("not_found", -32002, False, "session"), f"error: {error!r}")
    error = await raised(abridged.AbridgedError, client.call("session/new", cwd="/", ephemerl=True))
    check(error.code == "invalid_params" and error.data["path"] == "ephemerl", f"error: {error!r}")


LARGE = {"role": "user", "content": "Größe, 東京, 🚢\n" * 200_000}


async def cancelled(client):
    """A request of which the task is cancelled, or which takes too long, is cancelled in the daemon."""
    session = (await client.call("session/new", cwd="/", contextWindow=100_000_000))["session"]["sessionId"]
    await client.call("session/append", sessionId=session, messages=[*turn(0), LARGE, *turn(1)])
    for cancel in (True, False):
        ends = client.events(session)
        work = client.call("session/compact", sessionId=session, keepRecentTokens=1, wait=True, timeout=None if cancel else 0.01)
        task = asyncio.create_task(work)
        if cancel:
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            check(task.cancelled(), "a cancelled call is not cancelled")
        else:
            error = await raised(abridged.CallTimedOut, task)
            check(isinstance(error, TimeoutError) and error.code == "timed_out", f"error: {error!r}")
        status = await client.call("session/status", sessionId=session)
        check(not status["operations"], f"the operation goes on: {status}")
        ends.end(None)
        outcomes = [event["event"]["outcome"] async for event in ends if event["event"]["type"] == "compaction_end"]
        check(outcomes in ([], ["cancelled"]), f"the compactions ended with {outcomes}")


async def callbacks(env):
    asked, stopped = asyncio.Event(), asyncio.Event()
    waits = True

    async def complete(params):
        check(params["model"] == {"provider": "editor", "id": "writer"}, f"another model: {params['model']}")
        if waits:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        if params["purpose"] == "short_summary":
            raise RuntimeError("no short ones")
        text = "## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones"
        return {"message": {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}}

    def before_compact(params):
        check(threading.current_thread() is not threading.main_thread(), "a function as a callback blocks the reader")
        return {"action": "continue"}

    async with abridged.connect(llm=complete, hooks={"session_before_compact": before_compact}, env=env) as client:
        session = (await client.call("session/new", cwd="/", model=WRITER))["session"]["sessionId"]
        for number in range(20):
            await client.call("session/append", sessionId=session, messages=turn(number))
        ends = client.events(session)
        await client.call("session/compact", sessionId=session, keepRecentTokens=500)
        await asked.wait()
        await client.call("session/cancel", sessionId=session)
        await stopped.wait()
        types = []
        async for event in ends:
            types.append(event["event"]["type"])
            if event["event"]["type"] == "compaction_end":
                check(event["event"]["outcome"] == "cancelled", f"the end is {event}")
                break
        check("hook_end" in types, "the hook was not asked")
        waits = False
        answer = await client.call("session/compact", sessionId=session, keepRecentTokens=500, wait=True)
        check(answer["result"]["method"] == "llm" and "Go through the steps." in answer["result"]["summary"], f"the summary: {answer}")


async def turns(env):
    """A turn that the daemon runs, with a model and a tool of the client."""
    async def complete(params):
        if params["messages"][-1]["role"] == "toolResult":
            (block,) = params["messages"][-1]["content"]
            return {"message": {"role": "assistant", "content": [block], "stopReason": "stop"}}
        call = {"type": "toolCall", "id": "1", "name": "add", "arguments": {"numbers": [3, 4]}}
        return {"message": {"role": "assistant", "content": [call], "stopReason": "toolUse"}}

    async def execute(params):
        return {"content": str(sum(params["arguments"]["numbers"]))}

    async with abridged.connect(llm=complete, tools=execute, env=env) as client:
        add = {"name": "add", "description": "Adds numbers.", "inputSchema": {"type": "object"}}
        session = (await client.call("session/new", cwd="/", model=WRITER, tools=[add]))["session"]["sessionId"]
        events = client.events(session)
        await client.call("session/prompt", sessionId=session, message="What is 3 and 4?")
        async for event in events:
            if event["event"]["type"] == "turn_end":
                check(event["event"]["outcome"] == "completed", f"the turn: {event}")
                break
        answer = (await client.call("session/context", sessionId=session))["messages"][-1]
        check(answer["content"] == [{"type": "text", "text": "7"}], f"the answer of the turn is {answer}")


PROGRAM = """\
#!{python}
import json, os, sys
for line in sys.stdin:
    answer = {{"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {{}}}}
    event = {{"sessionId": "s", "epoch": "e", "seq": 1, "ts": "", "durable": True, "event": {{"type": "settled", "aborted": False}}}}
    notification = {{"jsonrpc": "2.0", "method": "session/event", "params": event}}
    os.write(1, "".join(json.dumps(frame) + "\\n" for frame in (answer, notification)).encode())  # at once
"""


async def answers_before_events():
    """The code after a call runs before the events that come with its answer are given out."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program")
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o700)
        async with abridged.connect(binary=str(program)) as client:
            await client.call("ping", timeout=5)
            stream = client.events()
            check((await asyncio.wait_for(anext(stream), 5))["seq"] == 1, "an event is lost")


async def large_lines(client):
    text = "y" * 5_000_000
    session = (await client.call("session/new", cwd="/", contextWindow=100_000_000))["session"]["sessionId"]
    (entry,) = (await client.call("session/append", sessionId=session, messages=[{"role": "user", "content": text}]))["entryIds"]
    answer = await client.call("session/entry", sessionId=session, entryId=entry)
    check(answer["entry"]["message"]["content"] == text, "a line of 5 MB is another one")


async def restarts(client, session):
    """A daemon that is killed is started again, with its sessions."""
    memory = (await client.call("session/new", cwd="/", ephemeral=True))["session"]["sessionId"]
    quiet = (await client.call("session/new", cwd="/"))["session"]["sessionId"]
    await client.call("session/append", sessionId=quiet, messages=turn(1))
    await client.call("session/unsubscribe", sessionId=quiet)
    reconnected = asyncio.get_running_loop().create_future()
    remove = client.on("reconnected", reconnected.set_result)
    before = await client.call("session/status", sessionId=session)
    (old,) = daemons()
    # The call is in flight when the daemon dies.
    stop()
    lost = asyncio.create_task(client.call("ping"))
    await asyncio.sleep(0)
    kill()
    error = await raised(abridged.DaemonExited, lost)
    check((error.exit_code, error.retryable) == (-9, True), f"error: {error!r}")
    # This one waits for the restart.
    after = await client.call("session/status", sessionId=session)
    check(after["session"]["leafEntryId"] == before["session"]["leafEntryId"], "the session is another one after the restart")
    rows = {row["sessionId"]: row["status"] for row in (await reconnected)["sessions"]}
    remove()
    check((rows[session], rows[memory], rows[quiet]) == ("expired", "lost", "ok"), f"reconnected with {rows}")
    check(daemons() != [old] and len(daemons()) == 1, "not one new daemon")
    heard = client.events()
    await client.call("session/append", sessionId=quiet, messages=turn(2))
    await client.call("session/append", sessionId=session, messages=turn(21))
    check((await anext(heard))["sessionId"] == session, "a session that was unsubscribed has events after the restart")
    stream, kills = client.events(), 1
    while True:
        kill()
        kills += 1
        with contextlib.suppress(abridged.DaemonExited):
            await client.call("ping")  # in flight, or waits for the restart
        try:
            await client.call("ping")
        except abridged.DaemonExited as error:
            check(error.code == "daemon_exited" and kills == 6, f"after {kills} ends within a minute: {error!r}")
            break
    await raised(abridged.DaemonExited, last(stream))
    check(not daemons(), "more than five restarts in a minute")


async def last(stream):
    async for _ in stream:
        pass


async def the_end(env):
    client = abridged.connect(env=env)
    await raised(abridged.ClientClosed, client.call("ping"))
    await client.start()
    stream = client.events()
    await client.close()
    check([event async for event in stream] == [], "a stream of a closed client has events")
    await raised(abridged.ClientClosed, client.call("ping"))
    check(not daemons(), "close leaves a daemon")
    # A daemon that does not end by itself is killed.
    await client.start()
    stop()
    began = time.monotonic()
    await client.close()
    check(not daemons() and 2 < time.monotonic() - began < 10, "a daemon that hangs is not killed after 3 s")


async def missing(env):
    error = await raised(abridged.BinaryNotFound, abridged.connect(binary="/nowhere/abridged").start())
    check(error.places == ["/nowhere/abridged"] and "cargo install abridged" in str(error), f"error: {error}")
    bare = {"ABRIDGED_BIN": "", "PATH": "/nowhere", "HOME": "/nowhere"}
    error = await raised(abridged.BinaryNotFound, abridged.connect(env=bare).start())
    check(len(error.places) == 4 and "/nowhere/.cargo/bin/abridged" in error.places, f"places: {error.places}")
    # A program that is no daemon.
    error = await raised(abridged.DaemonExited, abridged.connect(binary="/bin/echo").start())
    check(not daemons(), "a program that is no daemon runs on")


def sync(env):
    heard = []
    with abridged.connect_sync(env=env) as client:
        client.on_event(heard.append)
        events = client.events()
        session = client.call("session/new", cwd="/")["session"]["sessionId"]
        client.call("session/append", sessionId=session, messages=turn(1))
        check(next(events)["event"]["type"] == "entry_appended" and heard, "no events in a thread")
        ended = threading.Thread(target=lambda: list(events))
        ended.start()
        try:
            client.call("session/status", sessionId="none")
        except abridged.AbridgedError as error:
            check(error.code == "not_found", f"error: {error!r}")
        kill()
        with contextlib.suppress(abridged.DaemonExited):
            client.call("ping")
        check(client.call("session/status", sessionId=session)["session"]["entryCount"] == 2, "the session is gone after a restart")
    ended.join(5)
    check(not ended.is_alive(), "a stream does not end with its client")
    check(not daemons() and not any(thread.name == "abridged" for thread in threading.enumerate()), "close leaves something")


def fits():
    history = [{"role": "user", "content": "Look into each file."}]
    for number in range(60):
        call = {"id": f"call-{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{number}.txt"}}'}}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": call["id"], "content": f"Line {number} of the file. " * 60})
    fitted = abridged.fit(messages=history, format="openai_chat", contextWindow=14_000)
    cut = fitted["firstKeptIndex"]
    check(fitted["tokensAfter"] < 14_000 < fitted["tokensBefore"], f"{fitted['tokensBefore']} tokens became {fitted['tokensAfter']}")
    check(0 < cut and fitted["messages"][-len(history[cut:]) :] == history[cut:], "the kept messages are changed")
    again = asyncio.run(abridged.afit(messages=history[cut:], format="openai_chat", contextWindow=14_000, previousSummary=fitted["summary"]))
    check(again["firstKeptIndex"] == 0 and again["summary"] == fitted["summary"], "what fits is summarized again")
    check(len(daemons()) == 1, "two calls have two daemons")
    small = abridged.fit(messages=history, format="openai_chat", contextWindow=14_000, settings={"compaction": {"keepRecentTokens": 1000}})
    check(small["firstKeptIndex"] > cut and len(daemons()) == 2, "settings are not heard")


def children():
    """Forked processes have daemons of their own, and a process that ends leaves none."""
    program = """
import abridged, os, sys
pid = lambda: abridged.fit(messages=[{"role": "user", "content": "a"}], contextWindow=14000) and sorted(os.popen(f"pgrep -P {os.getpid()} abridged").read().split())[:1]
mine = pid()
child = os.fork()
if child == 0:
    print(*pid(), *mine, flush=True)
    sys.exit(0)
os.waitpid(child, 0)
print(*pid(), *mine)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True).stdout.split()
    check(len(said) == 4 and said[0] != said[1] and said[2] == said[3] == said[1], f"daemons of parent and child: {said}")
    for pid in said:
        check(subprocess.run(["ps", "-p", pid], capture_output=True).returncode != 0, "a daemon outlives its process")


async def main(env):
    before = asyncio.all_tasks()
    async with abridged.connect(env=env) as client:
        session = await events_in_order(client)
        await errors(client)
        await cancelled(client)
        await large_lines(client)
        await restarts(client, session)
    check(not daemons(), "close leaves a daemon")
    await answers_before_events()
    await callbacks(env)
    await turns(env)
    await the_end(env)
    await missing(env)
    tasks = asyncio.all_tasks() - before
    check(not tasks, f"tasks go on: {tasks}")


env = {"ABRIDGED_DISABLE_AUTOCOMPACT": "1"}
asyncio.run(asyncio.wait_for(main(env), 60))
sync(env)
children()
fits()
