// Makes a session with the daemon that the installed packages carry, and prints its file.

import { connect } from "abridged-client";

const client = await connect();
try {
  console.log((await client.call("session/new", { cwd: process.cwd() })).session.path);
} finally {
  await client.close();
}
