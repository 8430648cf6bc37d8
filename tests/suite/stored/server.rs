//! A PostgreSQL of a test, in a temporary folder. It refuses to run as root, so it runs as another user then.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A server that ends with this.
pub struct Server {
    programs: PathBuf,
    folder: tempfile::TempDir,
    user: Option<&'static str>,
    port: u16,
}

impl Server {
    /// Starts a server. Without PostgreSQL on this machine the test is skipped, and says so.
    #[allow(dead_code, reason = "the benchmark has settings of its own")]
    pub fn start() -> Option<Self> {
        Self::with("fsync=off")
    }

    /// The same with lines of settings.
    pub fn with(settings: &str) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").expect("a folder");
        let is_root = rustix::process::geteuid().is_root();
        let user = is_root.then(|| if has_user("postgres") { "postgres" } else { "nobody" });
        if let Some(user) = user {
            run(Command::new("chown").args([user]).arg(folder.path()));
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
        let server = Self { programs, folder, user, port };
        let data = server.data();
        let data = data.to_str().expect("a path");
        server.run("initdb", &["-D", data, "-U", "postgres", "-A", "trust", "--no-sync"]);
        let socket = server.folder.path().display().to_string();
        let settings =
            format!("listen_addresses='127.0.0.1'\nport={port}\nunix_socket_directories='{socket}'\n{settings}\n");
        let config = server.data().join("postgresql.conf");
        let text = fs::read_to_string(&config).expect("its settings");
        fs::write(&config, text + &settings).expect("its settings");
        server.control("start");
        server.query("CREATE DATABASE other");
        Some(server)
    }

    /// The address of its first database.
    pub fn address(&self) -> String {
        self.address_of("postgres", "postgres")
    }

    /// The address of a database for a role.
    pub fn address_of(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements in the first database, and returns what they print.
    pub fn query(&self, text: &str) -> String {
        let port = self.port.to_string();
        let given =
            ["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1", "-c", text, "postgres"];
        let output = run(Command::new(self.programs.join("psql")).args(given));
        String::from_utf8(output.stdout).expect("text")
    }

    /// A program of the server that connects to it.
    #[allow(dead_code, reason = "the benchmark runs pgbench")]
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "postgres"]);
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn control(&self, what: &str) {
        let (data, log) = (self.data(), self.folder.path().join("log"));
        let (data, log) = (data.to_str().expect("a path"), log.to_str().expect("a path"));
        self.run("pg_ctl", &["-D", data, "-l", log, "-m", "immediate", "-w", what]);
    }

    fn run(&self, program: &str, given: &[&str]) {
        let program = self.programs.join(program);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", "nogroup", "--clear-groups"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        run(command.args(given).current_dir("/tmp"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.control("stop");
    }
}

fn run(command: &mut Command) -> Output {
    // A server keeps the pipes of the process that starts it.
    let quiet = command.get_program().to_string_lossy().ends_with("pg_ctl")
        || command.get_args().any(|it| it.to_string_lossy().ends_with("pg_ctl"));
    let output = if quiet {
        let status = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
        status.map(|status| Output { status, stdout: Vec::new(), stderr: Vec::new() })
    } else {
        command.output()
    };
    let output = output.expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The folder of the newest server's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    folders.sort();
    let is_server = |folder: &&PathBuf| ["initdb", "pg_ctl", "psql"].iter().all(|it| folder.join(it).is_file());
    folders.iter().rfind(is_server).cloned()
}

fn has_user(name: &str) -> bool {
    let users = fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    users.lines().any(|line| line.starts_with(&format!("{name}:")))
}
