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
from contextlib import suppress
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
from processes import children_of
from server import Missing, make_template
from world import Skipped, World

# These wait most of their time, and run at once.
WAITING = (
    kills.kills, owners.sleepers, owners.no_locks, outages.outages, outages.frozen_server, outages.late_server,
    stragglers.withdrawn, stragglers.late_statement, stragglers.row_lock, poolers.behind_a_pooler, refusals.addresses, administration.restarts,
    administration.crowded, administration.ended_connections, administration.deletions, administration.commands, administration.read_only,
    administration.rotated, owners.killed_owner, owners.new_owner, owners.raced, followers.followers, followers.fail_over,
    followers.lossy_fail_over, refusals.newer_store, refusals.roles, refusals.encryption, bad_input.odd_texts, bad_input.tenants,
    bad_input.caches, bad_input.clocks, bad_input.full_disk, bad_input.full_cache, bad_input.long_lines,
)

# These keep the machine busy, and run one after the other.
BUSY = (kills.cut_connections, owners.handed_over)


class Run:
    """The scenarios that ran, and how they ended."""

    def __init__(self, folder, share, seed):
        self.folder, self.template, self.share, self.seed = folder, folder / "template", share, seed
        self.well, self.failed, self.left_out, self.worlds = [], [], [], set()

    def __call__(self, scenario):
        """Runs a scenario in a world of its own."""
        name, begun = scenario.__name__, time.monotonic()
        world = World(self.folder / name, self.template, self.share, self.seed)
        self.worlds.add(world)
        try:
            with world:
                said = scenario(world)
            self.well.append(name)
            print(f"{name}: {said} ({time.monotonic() - begun:.1f} s)", file=sys.stderr, flush=True)
        except Skipped as why:
            self.left_out.append(f"{name} ({why})")
            print(f"left out: {name}: {why}", file=sys.stderr, flush=True)
        except Exception:
            self.failed.append(name)
            traceback.print_exc()
        finally:
            self.worlds.discard(world)

    def end(self, *_):
        """Ends all that runs, in the middle of it."""
        for world in list(self.worlds):
            world.close()
        # Those that were just being made. The processes of a server end with their first one.
        while children := children_of(os.getpid()):
            for pid in children:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        self.clean()
        os._exit(1)

    def clean(self):
        """Removes its folder. A process that ends may still write into it."""
        while self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--part", type=float, default=1.0, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("scenarios", nargs="*")
    arguments = parser.parse_args()
    wanted = [it for it in (*WAITING, *BUSY) if not arguments.scenarios or it.__name__ in arguments.scenarios]
    # Not below $TMPDIR, which the user of a server may not enter.
    folder = Path(tempfile.mkdtemp(prefix="abridged-store-", dir="/tmp"))
    folder.chmod(0o755)
    begun, run = time.monotonic(), Run(folder, arguments.part, arguments.seed)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, run.end)
    try:
        make_template(run.template)
        with ThreadPoolExecutor(5) as pool:
            list(pool.map(run, (it for it in wanted if it in WAITING)))
        for scenario in wanted:
            if scenario in BUSY:
                run(scenario)
    except Missing as missing:
        sys.exit(str(missing))
    finally:
        run.clean()
    if run.failed or not run.well:
        sys.exit(f"failed: {', '.join(run.failed) or 'no scenario ran'}")
    part = "" if arguments.part >= 1 else f" at {arguments.part:.0%} of the rounds"
    rest = f", left out: {'; '.join(run.left_out)}" if run.left_out else ""
    print(f"store: ok, {len(run.well)} scenarios{part} in {time.monotonic() - begun:.0f} s{rest}")


if __name__ == "__main__":
    main()
