//! Bytes on the wire: nothing but frames goes out, whoever prints, and how they come in makes no difference.

use crate::{
    support::Home,
    wire::{Peer, command},
};
use serde_json::{Value, json};
use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// It only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(20);

/// Says that the test below runs as a daemon, in a process of its own.
const AS_DAEMON: &str = "ABRIDGED_TEST_SERVES";

/// Line behind the output of libtest that precedes a test.
const BEGINS: &str = "-- stdout begins --";

/// The daemon with a careless library in its process. Not a test by itself: the one below runs it.
#[test]
#[ignore = "is run by every_byte_on_stdout_is_a_frame_while_a_library_prints"]
#[expect(clippy::print_stdout, reason = "printing is what it is about")]
fn serves_while_a_library_prints() {
    if env::var_os(AS_DAEMON).is_none() {
        return;
    }
    println!("\n{BEGINS}");
    thread::spawn(|| {
        let same = |a, b| {
            let of = |fd| rustix::fs::fstat(fd).map(|it| (it.st_dev, it.st_ino)).ok();
            of(a) == of(b)
        };
        // Output from before the daemon duplicates stdout is out of its hands. The duplication happens in time.
        let end = Instant::now() + LONG / 4;
        while !same(rustix::stdio::stdout(), rustix::stdio::stderr()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        for n in 0.. {
            println!("printed {n}");
            print!("half a line ");
            let _ = std::io::stdout().flush();
            let _ =
                rustix::io::write(rustix::stdio::stdout(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"forged\"}\n");
            // A child has the descriptors of its parent.
            if n % 50 == 0 {
                let _ = Command::new("sh").args(["-c", "echo by a child"]).status();
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    let code = abridged::daemon::serve::serve(None, None, None, None).expect("it serves");
    // libtest would print its own opinion.
    std::process::exit(code);
}

#[test]
fn every_byte_on_stdout_is_a_frame_while_a_library_prints() {
    let home = Home::new();
    let mut child = Command::new(env::current_exe().expect("this test has a file"))
        .args(["--ignored", "--exact", "stdout::serves_while_a_library_prints", "--nocapture", "--test-threads=1"])
        .env(AS_DAEMON, "1")
        .env("ABRIDGED_DATA_DIR", home.path("data"))
        .env("ABRIDGED_CONFIG_DIR", home.path("config"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test runs itself");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let (noisy, noise_began) = std::sync::mpsc::channel();
    let errors = thread::spawn(move || {
        let mut all = String::new();
        while errors.read_line(&mut all).is_ok_and(|read| read > 0) {
            if all.contains("by a child") {
                let _ = noisy.send(());
            }
        }
        all
    });
    let mut to = child.stdin.take().expect("a pipe");
    let mut from = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while line.trim() != BEGINS {
        line.clear();
        assert!(from.read_line(&mut line).expect("text") > 0, "the daemon does not begin");
    }
    let said = thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("it can be read");
        bytes
    });
    let mut asked = 0;
    let mut ask = |method: &str, params: Value| {
        asked += 1;
        let request = json!({"jsonrpc": "2.0", "id": asked, "method": method, "params": params});
        writeln!(to, "{request}").expect("the daemon reads");
        asked
    };
    ask("initialize", json!({}));
    // So long as it says nothing on stderr, there is no noise to be guarded against.
    let began = noise_began.recv_timeout(LONG);
    for _ in 0..100 {
        ask("session/new", json!({"cwd": "/p", "ephemeral": true}));
        ask("rpc.discover", json!({}));
        thread::sleep(Duration::from_millis(2));
    }
    drop(to);
    let said = said.join().expect("the reader ends");
    assert!(child.wait().expect("an end").success());
    let errors = errors.join().expect("the reader ends");
    let lines: Vec<&[u8]> = said.split(|byte| *byte == b'\n').collect();
    let (last, lines) = lines.split_last().expect("the end of the last line");
    assert_eq!(*last, b"", "the last frame is whole");
    let mut answers = 0;
    for line in lines {
        let frame: Value = serde_json::from_slice(line)
            .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(line)));
        assert_eq!(frame["jsonrpc"], "2.0");
        assert_ne!(frame["result"], "forged");
        answers += usize::from(frame.get("id").is_some());
    }
    assert_eq!(answers, asked);
    began.expect("the library printed to stderr");
    assert!(errors.contains("printed 7") && errors.contains("forged"), "the library did not print");
}

/// Waits until the daemon has taken everything out of the pipe.
fn taken(pipe: &impl std::os::fd::AsFd) {
    let end = Instant::now() + LONG;
    while rustix::io::ioctl_fionread(pipe).expect("a pipe says how full it is") > 0 {
        assert!(Instant::now() < end, "the daemon does not read");
        thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn a_frame_that_arrives_in_two_pieces_is_answered_wherever_it_was_cut() {
    let home = Home::new();
    let mut peer = Peer::start(&home);
    for at in 0..=60 {
        let (id, frame) = peer.request("ping", "{\"é\":\"\u{2028}\"}");
        let (a, b) = frame.as_bytes().split_at(at.min(frame.len()));
        peer.write(a);
        taken(peer.stdin());
        peer.write(b);
        assert_eq!(peer.answer(id), Ok(json!({"_meta": {"ignored": ["é"]}})), "cut at {at}");
    }
    peer.end();

    let mut child = command(&home).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut to = child.stdin.take().expect("a pipe");
    let body = |id: usize, method: &str| json!({"id": id, "method": method}).to_string();
    let frame = |body: String| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    // The first byte alone has to say which framing it is.
    let frames = std::iter::once(frame(body(0, "initialize"))).chain((1..60).map(|id| frame(body(id, "ping"))));
    for (at, frame) in frames.enumerate() {
        let (a, b) = frame.as_bytes().split_at((at + 1).min(frame.len()));
        to.write_all(a).expect("the daemon reads");
        taken(&to);
        to.write_all(b).expect("the daemon reads");
    }
    drop(to);
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    assert!(child.wait().expect("an end").success());
    for id in 0..60 {
        assert!(out.contains(&format!("\"id\":{id},\"result\"")), "{id}: {out}");
    }
}
