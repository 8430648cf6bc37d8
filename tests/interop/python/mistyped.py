"""Mistakes that the types have to find, one in each line that says so."""

import abridged

with abridged.connect_sync() as client:
    client.call("session/knew", cwd="/")  # error
    client.call("session/new")  # error
    client.call("session/new", cwd=1)  # error
    client.call("session/new", cwd="/")["sessionId"]  # error
    client.on("notices", print)  # error
    client.fit(messages=[], format="open_ai")  # error
