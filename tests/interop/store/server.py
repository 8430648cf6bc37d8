"""The PostgreSQL of a test: a cluster in a temporary folder, which can be stopped, killed, paused and copied.

The server refuses to run as root. For root it runs as an unprivileged user, for any other user as that user. Its processes are
found in /proc, so the machine is one with Linux."""

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

from processes import children_of, state_of

PROGRAMS = ("initdb", "postgres", "psql", "pg_basebackup")

# A write of a killed server is in the kernel's cache, and no test cuts the power: fsync costs only time. Commits are
# synchronous, as a store needs them.
CONFIGURATION = """
fsync = off
synchronous_commit = on
shared_buffers = 32MB
max_connections = 60
wal_level = replica
autovacuum_naptime = 10s
"""


class Missing(Exception):
    """PostgreSQL is not installed."""


@cache
def programs():
    """The folder of the server's programs: that of PATH, else the newest of Debian."""
    on_path = shutil.which("initdb")
    versions = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin"), key=lambda it: float(it.parent.name), reverse=True)
    for folder in ([Path(on_path).resolve().parent] if on_path else []) + versions:
        if all((folder / program).exists() for program in PROGRAMS):
            return folder
    raise Missing("no initdb in PATH or /usr/lib/postgresql/*/bin (apt-get install postgresql)")


@cache
def user():
    """The arguments of subprocess for the user of the server."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise Missing("root may not run a server, and there is no user postgres or nobody")


def give(path, mode):
    """Gives a file or a folder to the user of the server."""
    path.chmod(mode)
    if user():
        os.chown(path, user()["user"], user()["group"])


def port():
    """A free port. It is below those of outgoing connections: one of a daemon may not have the port of a server that is
    down for a moment."""
    while True:
        number = random.randrange(20_000, 32_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", number))
                return number
            except OSError:
                continue


def run(program, *arguments):
    """Runs a program of the server to its end, as the user of the server."""
    done = subprocess.run(
        [programs() / program, *arguments], capture_output=True, text=True, errors="replace", cwd="/", timeout=60, **user()
    )
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def make_template(folder):
    """Initializes a cluster, of which each server gets a copy."""
    folder.mkdir()
    give(folder, 0o700)
    run("initdb", "-D", folder, "-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")


def server_of(template, folder, configuration="", environment=()):
    """A server of a copy of the template, with a database `sessions`."""
    def copy(data):
        shutil.copytree(template, data)
        for path in (data, *data.rglob("*")):
            give(path, 0o700 if path.is_dir() else 0o600)

    server = Server(folder, copy, configuration, environment)
    server.sql("CREATE DATABASE sessions", database="postgres")
    return server


class Server:
    """A server in a folder of its own, which is made. `fill` puts a cluster into its data folder."""

    def __init__(self, folder, fill, configuration="", environment=()):
        self.folder, self.data, self.port = folder, folder / "data", port()
        self.environment, self.process, self.paused = dict(environment), None, []
        folder.mkdir()
        give(folder, 0o700)
        fill(self.data)
        place = f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{folder}'\n"
        self.configure(CONFIGURATION + place + configuration)
        self.start()

    def configure(self, lines):
        """Adds lines to the configuration, the last of which count. They hold from the next start or reload on."""
        with open(self.data / "postgresql.auto.conf", "a") as file:
            file.write(lines + "\n")

    def admit(self, *lines):
        """Replaces the rules by which clients are let in, beside those of this test's own statements."""
        (self.data / "pg_hba.conf").write_text("\n".join(("local all all trust", *lines, "")))
        before = self.sql("SELECT pg_conf_load_time()")
        self.process.send_signal(signal.SIGHUP)
        while self.sql("SELECT pg_conf_load_time()") == before:
            time.sleep(0.01)

    def start(self):
        """Starts it, and waits until it answers."""
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [programs() / "postgres", "-D", self.data], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                start_new_session=True, env={**os.environ, **self.environment}, **user(),
            )
        end = time.monotonic() + 60
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server does not start: {self.said()}")
            time.sleep(0.01)

    def answers(self):
        """Whether it takes connections: `ready`, or for a replica `standby`, is in its file of the postmaster."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.process.pid) and lines[7].strip() in ("ready", "standby")

    def stop(self, how=signal.SIGINT):
        """Ends it: SIGINT ends its connections, SIGQUIT leaves its data as a crash does."""
        self.process.send_signal(how)
        self.process.wait(30)

    def kill(self):
        """Kills all its processes at once, as a machine that fails."""
        self.process.send_signal(signal.SIGSTOP)  # or it would see a child die, and start others
        self._await_stop()
        children = children_of(self.process.pid)
        for pid in (*children, self.process.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.wait(30)
        # The next server waits for none of them, and refuses to start beside one.
        while any(state_of(Path(f"/proc/{pid}")) not in ("", "Z") for pid in children):
            time.sleep(0.001)

    def restart(self):
        """Stops it where it runs, and starts it."""
        if self.process.poll() is None:
            self.stop()
        self.start()

    def pause(self):
        """Stops all its processes, as a machine that sleeps: connections stay, and nothing answers."""
        self.process.send_signal(signal.SIGSTOP)
        self._await_stop()
        self.paused = [self.process.pid, *children_of(self.process.pid)]
        for pid in self.paused[1:]:
            os.kill(pid, signal.SIGSTOP)

    def resume(self):
        """Ends the pause."""
        for pid in reversed(self.paused):
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    def _await_stop(self):
        while state_of(Path(f"/proc/{self.process.pid}")) not in ("T", "Z"):
            time.sleep(0.001)

    def close(self):
        """Ends it, however it is."""
        if self.process and self.process.poll() is None:
            self.kill()

    def replica(self, folder):
        """A copy in another folder, which follows this server and takes no writes."""
        source = ("-h", self.folder, "-p", str(self.port), "-U", "owner")
        copy = lambda data: run("pg_basebackup", "-D", data, *source, "-R", "-c", "fast", "--no-sync")
        return Server(folder, copy, "synchronous_standby_names = ''")

    def promote(self):
        """Makes a replica a server of its own."""
        self.sql("SELECT pg_promote(true, 30)", database="postgres")

    def url(self, user="owner", password=None, database="sessions", host="127.0.0.1", port=None, **parameters):
        """The address of a store in it."""
        secret = f":{quote(password, safe='')}" if password else ""
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        return f"postgres://{user}{secret}@{host}:{port or self.port}/{database}{query}"

    def sql(self, text, database="sessions"):
        """The rows of statements, each as a list of columns."""
        said = run(
            "psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", "owner",
            "-d", database, "-c", text,
        )
        return [line.split("\t") for line in said.splitlines()]

    @contextmanager
    def holding(self, statement):
        """A transaction of its own that stays open after a statement."""
        place = ("-h", self.folder, "-p", str(self.port), "-U", "owner", "-d", "sessions")
        holder = subprocess.Popen(
            [programs() / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd="/", **user(),
        )
        holder.stdin.write(f"BEGIN; {statement};\n\\echo held\n")
        holder.stdin.flush()
        try:
            if "held\n" not in iter(holder.stdout.readline, ""):
                raise RuntimeError(f"not performed: {statement}")
            yield
        finally:
            holder.stdin.close()
            holder.wait(10)

    def file(self, session, schema="abridged"):
        """The bytes of a session, from its rows in order."""
        rows = self.sql(f"""SELECT encode(data, 'hex') FROM "{schema}".line WHERE session = '{session}' ORDER BY number""")
        return b"".join(bytes.fromhex(row[0]) for row in rows)

    def log(self):
        """Its log."""
        return (self.folder / "log").read_text(errors="replace")

    def said(self):
        """The end of its log."""
        return "".join(line[:400] + "\n" for line in self.log().split("\n")[-15:])
