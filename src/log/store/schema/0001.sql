-- The tables of a store, version 1. The schema is the first one of the search path.

-- Version of the tables, and the identity by which caches know the store.
CREATE TABLE about (
    version integer NOT NULL,
    identity text NOT NULL
);

-- Daemons that own sessions. A daemon renews its row while it lives.
CREATE TABLE owner (
    id text PRIMARY KEY,
    lock bigint NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    version text NOT NULL,
    renewed timestamptz NOT NULL DEFAULT now()
);

-- Sessions. A write names the epoch and the number of lines, and changes nothing where they are others.
CREATE TABLE session (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    cwd text NOT NULL,
    created text NOT NULL,
    parent text,
    title text,
    preview text,
    entries bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 1,
    lines bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    whole boolean NOT NULL DEFAULT true,
    changed timestamptz NOT NULL DEFAULT now(),
    epoch bigint NOT NULL DEFAULT 1,
    owner text,
    owned timestamptz,
    running text NOT NULL DEFAULT '[]',
    watched timestamptz
);

-- The lines of a session, each with its newline, in the order of its file.
CREATE TABLE line (
    session text NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    number bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session, number)
);

-- Texts of messages and summaries, for the search.
CREATE TABLE passage (
    session text NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    line bigint NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (session, line)
);
CREATE INDEX passage_words ON passage USING gin (to_tsvector('simple', text));
