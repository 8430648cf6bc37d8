"""Makes a session with the daemon that the installed wheel carries, and prints its file."""

import os

import abridged

with abridged.connect_sync() as client:
    print(client.call("session/new", cwd=os.getcwd())["session"]["path"])
