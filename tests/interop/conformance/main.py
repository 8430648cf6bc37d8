"""The summaries that abridged extracts, measured by compaction-conformance-kit: typed facts are planted in a session, it is
compacted round after round at a fixed size, and the kit looks for the facts.

    main.py [--table]

Without an option the shares have to be those of docs/FIDELITY.md. With --table they are printed."""

import itertools
import json
import os
import subprocess
import sys
import tempfile

from compaction_kit.canaries import CanaryType
from compaction_kit.compacted import CompactedContext
from compaction_kit.compactors import _turns_to_text
from compaction_kit.corpus import build_random_session
from compaction_kit.generated import build_generated_session
from compaction_kit.probes import BehaviorProbe
from compaction_kit.semantic_corpus import build_semantic_heldout_session, build_semantic_session
from compaction_kit.session import _FILLER, Turn

ROUNDS = 5


class Daemon:
    """A daemon over pipes. One request at a time; events are not read."""

    def __init__(self):
        program = os.environ.get("ABRIDGED_BIN", "abridged")
        self.process = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ids = itertools.count(1)
        self.call("initialize", protocolVersion=1, clientInfo={"name": "conformance", "version": "1"})

    def call(self, command, **params):
        id = next(self.ids)
        frame = {"jsonrpc": "2.0", "id": id, "method": command, "params": params}
        self.process.stdin.write(json.dumps(frame) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == id and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(f"{command}: {answer['error']}")
                return answer["result"]
        raise RuntimeError("the daemon ended")


class Compactor:
    """A session of a daemon. The compacted context is the summary of everything before. A round that begins with the summary
    of the round before goes on in the same session."""

    name = "abridged"

    def __init__(self, daemon):
        self.daemon, self.session, self.summary = daemon, None, None

    def compact(self, turns, round_num, budget_chars):
        if turns and turns[0].text == self.summary:
            self.append(turns[1:])
        else:
            system = "\n".join(turn.text for turn in turns if turn.role == "system")
            new = self.daemon.call("session/new", cwd=tempfile.gettempdir(), systemPrompt=system, contextWindow=1_000_000,
                                   settings={"tokens": {"estimator": "chars"}, "compaction": {"enabled": False}})
            self.session = new["session"]["sessionId"]
            self.append(turn for turn in turns if turn.role != "system")
        self.summary = self.within(budget_chars)
        return CompactedContext(self.summary, self.name, round_num)

    def append(self, turns):
        """Appends turns of users, assistants and tools."""
        messages = [self.message(number, turn) for number, turn in enumerate(turns, 1)]
        if messages:
            self.daemon.call("session/append", sessionId=self.session, messages=messages)

    @staticmethod
    def message(number, turn):
        if turn.role == "user":
            return {"role": "user", "content": turn.text, "timestamp": number}
        return {"role": "assistant", "content": [{"type": "text", "text": turn.text}], "stopReason": "stop",
                "timestamp": number}

    def within(self, budget):
        """The summary of the whole session within a number of characters. The limit of a summary is in tokens, so the largest
        one that fits is searched for."""
        fits, too_large = 0, budget
        summary = None
        while too_large - fits > 8:
            tokens = (fits + too_large) // 2
            if summary is not None:
                self.daemon.call("session/undo_compaction", sessionId=self.session)
            summary = self.compacted(tokens)
            fits, too_large = (tokens, too_large) if len(summary) <= budget else (fits, tokens)
        self.daemon.call("session/undo_compaction", sessionId=self.session)
        return self.compacted(fits)

    def compacted(self, tokens):
        """The summary of the whole session within a number of tokens."""
        # The largest summary is four fifths of the reserve.
        self.daemon.call("settings/set", scope="session", sessionId=self.session,
                         patch={"compaction": {"reserveTokens": tokens * 5 // 4}})
        done = self.daemon.call("session/compact", sessionId=self.session, method="extractive", keepRecentTokens=0, wait=True)
        if done["outcome"] != "completed":
            raise RuntimeError(done)
        return done["result"]["summary"]


def turns_between(number, start):
    """Turns of a conversation that goes on about something else."""
    texts = (_FILLER[at % len(_FILLER)] for at in range(start, start + number))
    return [turn for text in texts for turn in (Turn("user", text), Turn("assistant", "Acknowledged. Continuing."))]


def rounds(daemon, session, canaries, share, between):
    """The canaries in the last of five rounds with turns between them, and its text."""
    compactor = Compactor(daemon)
    budget = int(len(_turns_to_text(session.transcript())) * share)
    turns = session.transcript()
    for number in range(1, ROUNDS + 1):
        text = compactor.compact(turns, number, budget).text
        assert len(text) <= budget, f"{len(text)} characters of {budget}"
        turns = [Turn("system", text), *turns_between(between, number * between)]
    return [BehaviorProbe().probe(canary, text).survived for canary in canaries], text.lower()


def survival(daemon, build, seeds, share, between):
    """The share of canaries that survive, by type and over all, and that of replaced values that are still there."""
    by_type = {type: [] for type in CanaryType}
    stale = []
    for seed in seeds:
        session, canaries = build(seed)
        survived, text = rounds(daemon, session, canaries, share, between)
        for canary, survived in zip(canaries, survived):
            by_type[canary.type].append(survived)
            stale += [any(token.lower() in text for token in canary.superseded_tokens)] * bool(canary.superseded_tokens)
    everything = list(itertools.chain.from_iterable(by_type.values()))
    return {type.value: mean(found) for type, found in by_type.items()}, mean(everything), mean(stale)


def semantic(daemon, share, between, seeds=range(1, 5)):
    """Updates of which only the newest value is there, pairs of which both facts are, and the numbers of both."""
    newest = pairs = updates = both = 0
    for build in (build_semantic_session, build_semantic_heldout_session):
        for seed in seeds:
            session, canaries, meta = build(seed)
            _, text = rounds(daemon, session, canaries, share, between)
            by_id = {canary.id: canary for canary in canaries}
            has = lambda tokens, any_or_all: any_or_all(token.lower() in text for token in tokens)
            for id in meta["conflicts"]:
                updates += 1
                newest += has(by_id[id].required_tokens, all) and not has(by_id[id].superseded_tokens, any)
            for pair in meta["distinct_pairs"]:
                both += 1
                pairs += all(has(by_id[id].required_tokens, all) for id in pair)
    return newest, updates, pairs, both


def mean(values):
    return sum(values) / len(values) if values else 0.0


# The least share of planted facts that survives, by the size of a summary and the turns between two rounds.
LEAST = {(0.2, 1): 0.9, (0.3, 1): 1.0, (0.2, 120): 0.9, (0.3, 120): 1.0}

# The least number of the updates of the semantic corpora whose newest value alone is there.
LEAST_NEWEST = 60


def main():
    table = "--table" in sys.argv
    seeds, checked = range(1, 13 if table else 5), 0
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(XDG_STATE_HOME=home, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home)
        daemon = Daemon()
        for build in (build_random_session, build_generated_session):
            # The generated corpus calls one of two prohibitions replaced that both hold.
            has_stale = build is build_generated_session
            for (share, between), least in LEAST.items():
                # Rounds with many turns between them take most of the time.
                is_long = between > 1 and not table
                if is_long and has_stale:
                    continue
                by_type, all_types, stale = survival(daemon, build, seeds[:2] if is_long else seeds, share, between)
                if table:
                    types = " ".join(f"{type} {found:.2f}" for type, found in by_type.items())
                    print(f"{build.__name__}, {share:.0%}, {between} turns: {all_types:.3f}, stale {stale:.3f}; {types}",
                          flush=True)
                else:
                    assert all_types >= least, f"{all_types:.3f} of the facts survive, {share:.0%}, {between} turns: {by_type}"
                    assert has_stale or stale == 0, f"{stale:.3f} of the replaced values are there, {share:.0%}, {between} turns"
                    checked += 1
        for share in (0.2, 0.3):
            newest, updates, both, pairs = semantic(daemon, share, 1)
            if table:
                print(f"semantic, {share:.0%}: {newest} of {updates} updates, {both} of {pairs} pairs", flush=True)
            else:
                assert newest >= LEAST_NEWEST and both == pairs, (newest, updates, both, pairs)
                checked += 1
        daemon.process.stdin.close()
        daemon.process.wait(10)
    if not table:
        print(f"conformance: ok, {checked} corpora at their sizes")


main()
