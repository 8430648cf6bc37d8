"""A small program that the types have to accept. mypy --strict reads it, and it runs."""

import asyncio
import os

import abridged
from abridged.types import BeforeCompactAnswer, BeforeCompactParams, Envelope, LlmCompleteAnswer, LlmCompleteParams


async def complete(params: LlmCompleteParams) -> LlmCompleteAnswer:
    text = f"A summary in at most {params['maxTokens']} tokens."
    return {"message": {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}}


def before_compact(params: BeforeCompactParams) -> BeforeCompactAnswer:
    return {"action": "cancel", "reason": f"{params['preparation']['tokensBefore']} tokens are few"}


def outcome(event: Envelope) -> str | None:
    return event["event"]["outcome"] if event["event"]["type"] == "compaction_end" else None


async def main() -> None:
    async with abridged.connect(llm=complete, hooks={"session_before_compact": before_compact}, timeout=30) as client:
        remove = client.on("notice", lambda notice: print(notice["title"]))
        session = (await client.call("session/new", cwd=os.getcwd(), contextWindow=16_000))["session"]
        events = client.events(session["sessionId"])
        await client.call("session/append", sessionId=session["sessionId"], messages=[
            {"role": "user", "content": "Count the ships. " * 900},
            {"role": "assistant", "content": [{"type": "text", "text": "Seven."}]},
            {"role": "user", "content": "And the boats?"},
        ])
        answer = await client.call("session/compact", sessionId=session["sessionId"], keepRecentTokens=1, wait=True)
        if "outcome" in answer:
            print(answer["outcome"])
        async for event in events:
            if ended := outcome(event):
                print(ended)
                break
        remove()
        history: list[dict[str, str]] = [{"role": "user", "content": "Hello."}]
        fitted = await client.fit(messages=history, format="openai_chat", contextWindow=14_000)
        print(len(fitted["messages"]), fitted["summary"])


asyncio.run(main())
