//! The cost of a request: bytes, memory and processor work of the daemon's process. None of them is a time that somebody waits,
//! so a machine with other work to do gives nearly the same numbers.

use crate::support::Daemon;
use std::{collections::BTreeMap, fmt, fs};

/// The largest ratio of two costs, one for twice the size of the other.
const RATIO: f64 = 2.3;

/// The most runs of a request that seems to break the ratio. Threads that hold their copies at the same moment move a peak by
/// chance, and another process takes the caches of a processor. A cost of the wrong form is too high each time.
const RUNS: usize = 3;

/// A kind of cost.
struct Kind {
    name: &'static str,
    of: fn(Cost) -> u64,
    /// The part that does not depend on a size: locks, settings, the lists of sessions; arenas of the allocator; regular
    /// expressions that are built at their first use; a small compaction that one size needs and the other does not, which takes
    /// 50 ms.
    fixed: u64,
}

const KINDS: [Kind; 3] = [
    Kind { name: "bytes", of: |cost| cost.bytes, fixed: 256 << 10 },
    Kind { name: "memory", of: |cost| cost.memory, fixed: 8 << 20 },
    Kind { name: "work", of: |cost| cost.work, fixed: 100_000_000 },
];

/// The cost of a request.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Bytes that were read and written, of files and pipes.
    pub bytes: u64,
    /// Memory at the peak, above the memory before, in bytes.
    pub memory: u64,
    /// Processor work of all threads, in nanoseconds.
    pub work: u64,
}

/// The costs of one request, for half the size and for all of it, run by run.
#[derive(Debug, Default)]
pub struct Runs(Vec<(Cost, Cost)>);

impl Runs {
    /// Runs a request of both sizes until its costs are linear, or often enough. None where it has no size.
    pub fn of(mut run: impl FnMut() -> Option<(Cost, Cost)>) -> Option<Self> {
        let mut runs = Self::default();
        while runs.go_on() {
            runs.push(run()?);
        }
        Some(runs)
    }

    /// Adds a run of both sizes.
    pub fn push(&mut self, (half, all): (Cost, Cost)) {
        self.0.push((half, all));
    }

    /// Whether another run may show that the costs are linear.
    pub fn go_on(&self) -> bool {
        self.0.len() < RUNS && !self.is_linear()
    }

    /// The costs of a request that are not linear. In a run by hand each row is printed.
    pub fn verdict(&self, name: &str) -> Option<String> {
        if super::by_hand() {
            eprintln!("{name}:{self}");
        }
        (!self.is_linear()).then(|| format!("{name}:{self}"))
    }

    /// Whether each kind of cost is linear in one of the runs.
    pub fn is_linear(&self) -> bool {
        KINDS.iter().all(|kind| self.0.iter().any(|(half, all)| kind.is_linear(*half, *all)))
    }
}

impl Kind {
    /// Whether twice the size costs at most a little more than twice.
    fn is_linear(&self, half: Cost, all: Cost) -> bool {
        (self.of)(all) as f64 <= (self.of)(half) as f64 * RATIO + self.fixed as f64
    }
}

/// A row for each run: both costs of each kind, and their ratio.
impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (half, all) in &self.0 {
            for kind in &KINDS {
                let (half, all) = ((kind.of)(*half) as f64 / 1e6, (kind.of)(*all) as f64 / 1e6);
                write!(f, "  {} {half:.1} {all:.1} ({:.2})", kind.name, all / half.max(0.001))?;
            }
        }
        Ok(())
    }
}

/// The costs of a daemon from here on.
pub struct Meter {
    bytes: u64,
    memory: u64,
    /// The work of each thread, in nanoseconds.
    work: BTreeMap<String, u64>,
}

impl Meter {
    pub fn start(daemon: &Daemon) -> Self {
        // The peak begins again with the memory now.
        fs::write(format!("/proc/{}/clear_refs", daemon.pid()), "5").expect("a process of ours");
        Self { bytes: bytes(daemon), memory: number(daemon, "status", "VmRSS:"), work: work(daemon) }
    }

    pub fn stop(self, daemon: &Daemon) -> Cost {
        let before = |thread: &String| self.work.get(thread).copied().unwrap_or(0);
        let peak = number(daemon, "status", "VmHWM:");
        Cost {
            bytes: bytes(daemon) - self.bytes,
            memory: peak.saturating_sub(self.memory) << 10,
            work: work(daemon).iter().map(|(thread, work)| work - before(thread)).sum(),
        }
    }
}

/// The bytes that a daemon read and wrote so far.
fn bytes(daemon: &Daemon) -> u64 {
    number(daemon, "io", "rchar:") + number(daemon, "io", "wchar:")
}

/// A number in a file about a process.
fn number(daemon: &Daemon, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/{file}", daemon.pid())).expect("a process");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// The work of each thread so far, in nanoseconds on a processor. A thread that has nothing to do stays for ten seconds.
fn work(daemon: &Daemon) -> BTreeMap<String, u64> {
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("a process").flatten();
    let of = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let work = text.split_whitespace().next()?.parse().ok()?;
        Some((thread.file_name().into_string().ok()?, work))
    };
    threads.filter_map(of).collect()
}

#[test]
fn a_cost_that_grows_with_the_square_is_found() {
    let cost =
        |bytes: u64, memory: u64, work: u64| Cost { bytes: bytes << 20, memory: memory << 20, work: work * 10_000_000 };
    let is_linear = |all: Cost| Runs::of(|| Some((cost(2, 10, 40), all))).expect("it has a size").is_linear();
    assert!(is_linear(cost(4, 20, 80)));
    for all in [cost(8, 20, 80), cost(4, 40, 80), cost(4, 20, 160)] {
        assert!(!is_linear(all), "{all:?}");
    }
    let mut peaks = [40, 20].into_iter();
    let by_chance = Runs::of(|| Some((cost(2, 10, 40), cost(4, peaks.next().expect("two runs are enough"), 80))));
    assert!(by_chance.expect("it has a size").is_linear());
}
