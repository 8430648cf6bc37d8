//! `abridged serve`: the daemon on this process's stdin and stdout.

#![expect(clippy::disallowed_methods, reason = "the process")]

use crate::{
    daemon::{Daemon, EXIT_UNASKED, Places, stores},
    protocol::{
        errors::Failure,
        events::Severity,
        notices::NoticeCode,
        notifications::{Notice, NoticeParams, Notification as _},
    },
    session::recording::recorder::Recorder,
    wire::{
        outbox::Outbox,
        trace::Trace,
        transport::{Chosen, FrameReader, Framing, Inbound, LARGEST_FRAME},
    },
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

/// The longest time between the request to end and the end of the process.
const LONGEST_END: Duration = Duration::from_millis(1_950);

/// The longest time in which a client that sends requests may read no answer. After it the client counts as gone.
const LONGEST_UNREAD: Duration = Duration::from_secs(30);

/// The threads that read, count and write. More for many sessions at once are no faster, and each keeps memory of its own.
const THREADS: usize = 16;

/// The same with a store: most of them wait for its answer, and appends that wait together share a transaction.
const STORED_THREADS: usize = 512;

/// Serves until the end of stdin, an `exit`, or a signal. Records the sessions into the file `record`, and traces the frames
/// into the file `trace`. The sessions are in the `store` at this address, else in the one of the settings. Returns the exit code of the process.
///
/// # Errors
/// When stdout cannot be duplicated, the runtime cannot be made, or the file of the recording or of the trace is there already.
pub fn serve(
    framing: Option<Framing>,
    record: Option<&Path>,
    trace: Option<&Path>,
    store: Option<&str>,
) -> Result<i32, String> {
    let places = Places::from_environment()?;
    let data = places.data.clone();
    raise_descriptors()?;
    let stdout = guard_stdout().map_err(|error| format!("stdout cannot be set aside: {error}"))?;
    let chosen = Chosen::default();
    if let Some(framing) = framing {
        let _ = chosen.set(framing);
    }
    let is_stored = stores::is_named(store, &places);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(if is_stored { STORED_THREADS } else { THREADS })
        .enable_time()
        .enable_io()
        .build()
        .map_err(|error| format!("the runtime cannot be made: {error}"))?;

    let outbox = Arc::new(Outbox::new());
    let trace = trace.map(|path| traced(path, outbox.clone())).transpose()?;
    let recorder = record.map(|path| Recorder::start(path, outbox.clone())).transpose()?;
    let home = stores::home(store, &places, runtime.handle())?;
    let daemon = Daemon::in_home(home, recorder.clone(), outbox.clone(), places, runtime.handle().clone());
    let (client_gone, gone) = oneshot::channel();
    let writer = {
        let (outbox, chosen, trace) = (outbox.clone(), chosen.clone(), trace.clone());
        move || {
            outbox.write_traced(stdout, &chosen, trace.as_ref());
            // Either everything is written and the daemon ends, or nobody reads any more.
            let _ = client_gone.send(());
        }
    };
    let (stdin_ended, ended) = oneshot::channel();
    let reader = {
        let service = daemon.service();
        let (reading, trace) = (outbox.clone(), trace.clone());
        // Handlers may start tasks from this thread.
        let handle = runtime.handle().clone();
        move || {
            let _entered = handle.enter();
            let mut frames =
                FrameReader::new(BufReader::with_capacity(64 * 1024, io::stdin().lock()), chosen, LARGEST_FRAME);
            loop {
                // As at the end of its stdin: the sessions are closed in order.
                if let Err(error) = reading.wait_for_room(LONGEST_UNREAD) {
                    tracing::error!(%error, "the client is taken for gone");
                    break;
                }
                match frames.next_frame() {
                    Ok(Some(Inbound::Frame(bytes))) => {
                        trace.iter().for_each(|trace| trace.inbound(&bytes));
                        service.frame(&bytes);
                    }
                    Ok(Some(Inbound::TooLarge(ends))) => {
                        trace.iter().for_each(Trace::skipped);
                        let failure = Failure::FrameTooLarge { limit: LARGEST_FRAME };
                        if !service.is_skipped_answer(&ends, &failure) {
                            service.refuse(None, &failure);
                        }
                    }
                    Ok(Some(Inbound::BrokenHeader(what))) => {
                        let what = format!("{what}; a frame is `Content-Length: N`, an empty line, and N bytes");
                        service.refuse(None, &Failure::Parse(what));
                        break;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        tracing::error!(%error, "stdin cannot be read");
                        break;
                    }
                }
            }
            let _ = stdin_ended.send(());
        }
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), data = %data.display(), "serving");
    spawn_thread("abridged-out", writer)?;
    spawn_thread("abridged-in", reader)?;

    let (code, ending) = runtime.block_on(async {
        let asked = tokio::select! {
            () = daemon.exit.notified() => true,
            _ = ended => {
                daemon.caller.client_is_gone();
                false
            }
            _ = gone => false,
            signal = terminated() => {
                tracing::info!(signal, "ending");
                false
            }
        };
        let ending = Instant::now();
        tokio::select! {
            () = daemon.finish_sessions() => {}
            // Second signal: exit now. The files are whole, and the next owner settles running operations.
            signal = terminated() => tracing::warn!(signal, "ending at once"),
        }
        (if asked && !daemon.asked_to_shut_down() { EXIT_UNASKED } else { 0 }, ending)
    });
    daemon.abandon_requests();
    if let Some(recorder) = recorder {
        recorder.close(LONGEST_END.saturating_sub(ending.elapsed()));
    }
    outbox.close();
    // A client that is slow to read has what is left of the two seconds.
    outbox.wait_empty(LONGEST_END.saturating_sub(ending.elapsed()));
    if let Some(trace) = trace {
        trace.close(LONGEST_END.saturating_sub(ending.elapsed()));
    }
    tracing::info!(code, "ended");
    // Threads that still wait for a disk or a client have nothing left to do.
    runtime.shutdown_background();
    Ok(code)
}

/// Starts a trace. The client gets a notice where it ends early.
fn traced(path: &Path, outbox: Arc<Outbox>) -> Result<Trace, String> {
    Trace::start(path, crate::clock::now, move |why| {
        let notice = NoticeParams {
            severity: Severity::Warning,
            code: NoticeCode::TraceEnded,
            title: "The trace has ended".to_owned(),
            detail: Some(format!("{why}. The sessions go on, and the frames so far are in the file")),
        };
        outbox.notify(Notice::NAME, notice);
        // After the notice: stderr may be a file on the same full disk.
        tracing::warn!(why, "the trace has ended");
    })
}

/// The limit of open files that is asked for: an open session takes two, so this is enough for 30,000 sessions.
const MOST_DESCRIPTORS: u64 = 65_536;

/// The least limit of open files: the runtime, the streams, the watcher and one session with its work take fewer.
const LEAST_DESCRIPTORS: u64 = 48;

/// Raises the soft limit of open files to the hard one.
///
/// # Errors
/// When the hard limit is too low.
fn raise_descriptors() -> Result<(), String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Some systems refuse more than they have at most, and say of that nothing in the limit.
    for wanted in [MOST_DESCRIPTORS, 10_240] {
        let wanted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
        if current.is_none_or(|current| current >= wanted)
            || setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok()
        {
            break;
        }
    }
    match getrlimit(Resource::Nofile).current {
        Some(few) if few < LEAST_DESCRIPTORS => Err(format!(
            "this process may have only {few} files open, and needs {LEAST_DESCRIPTORS} or more; raise the limit, for \
             example with `ulimit -n 1024`"
        )),
        _ => Ok(()),
    }
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|error| format!("a thread cannot be made: {error}"))
}

/// Keeps stdout for frames: what anything else prints goes to stderr instead.
fn guard_stdout() -> io::Result<File> {
    let frames = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(frames))
}

/// Waits for a signal that asks the process to end, and gives its name.
async fn terminated() -> &'static str {
    let wait = |kind: SignalKind| async move {
        match signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    // A file size limit is an error of the write, not the end of the process.
    let _full = signal(SignalKind::from_raw(25));
    tokio::select! {
        () = wait(SignalKind::terminate()) => "SIGTERM",
        () = wait(SignalKind::hangup()) => "SIGHUP",
        () = wait(SignalKind::interrupt()) => "SIGINT",
    }
}
