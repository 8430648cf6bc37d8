"""The store against a real PostgreSQL: nothing that was answered is lost or doubled, whatever ends, sleeps or is refused.

    main.py [--part SHARE] [--seed SEED] [SCENARIO…]

`--part 0.1` runs a tenth of the rounds of the long scenarios. ABRIDGED_BIN names the program."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import administration
import bad_input
import followers
import kills
import outages
import owners
import poolers
import refusals
import stragglers
from server import Missing, Template
from world import Skipped, World

# These wait most of their time, and run at once.
WAITING = (
    owners.sleepers, owners.no_locks, outages.outages, outages.frozen_server, outages.late_server, stragglers.withdrawn,
    stragglers.late_statement, stragglers.row_lock,
    poolers.behind_a_pooler, refusals.addresses, administration.ended_connections, administration.restarts, administration.deletions, administration.read_only,
    administration.crowded, administration.rotated, owners.killed_owner, owners.new_owner, owners.raced,
    followers.followers, followers.fail_over, followers.lossy_fail_over, refusals.newer_store, refusals.roles, refusals.encryption, bad_input.odd_texts,
    bad_input.tenants, bad_input.clocks, bad_input.full_disk, bad_input.long_lines,
)

# These keep the machine busy, and run one after the other.
BUSY = (kills.kills, kills.cut_connections, owners.handed_over)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--part", type=float, default=1.0, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("scenarios", nargs="*")
    arguments = parser.parse_args()
    wanted = lambda scenario: not arguments.scenarios or scenario.__name__ in arguments.scenarios
    begun, worlds = time.monotonic(), set()
    folder = Path(tempfile.mkdtemp(prefix="abridged-store-", dir="/tmp"))

    def end(*_):
        """Ends everything, in the middle of it, too."""
        for world in list(worlds):
            world.ends.close()
            shutil.rmtree(world.folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)

    def run(scenario):
        name, started, world = scenario.__name__, time.monotonic(), World(template, arguments.part, arguments.seed)
        worlds.add(world)
        try:
            with world:
                said = scenario(world)
        except Skipped as why:
            world.skip(f"{name}: {why}")
            return name, True, world.skipped
        except Exception:
            traceback.print_exc()
            return name, False, world.skipped
        finally:
            worlds.discard(world)
        print(f"{name}: {said} ({time.monotonic() - started:.1f} s)", file=sys.stderr, flush=True)
        return name, True, world.skipped

    template = Template(folder)
    try:
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(run, filter(wanted, WAITING)))
        results += map(run, filter(wanted, BUSY))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    failed = [name for name, is_well, _ in results if not is_well]
    left_out = [what for *_, skipped in results for what in skipped]
    for what in left_out:
        print(f"left out: {what}", file=sys.stderr)
    if failed or not results:
        sys.exit(f"failed: {', '.join(failed) or 'there is no such scenario'}")
    rest = f", left out: {'; '.join(left_out)}" if left_out else ""
    part = "" if arguments.part >= 1 else f" at {arguments.part:.0%} of the rounds"
    print(f"store: ok, {len(results)} scenarios{part} in {time.monotonic() - begun:.0f} s{rest}")


if __name__ == "__main__":
    try:
        main()
    except Missing as missing:
        sys.exit(str(missing))
