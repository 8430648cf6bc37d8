//! The address of a store: a URL of PostgreSQL, the way to its password, and how its certificate is checked.

use std::{fmt, path::PathBuf, pin::Pin, str::FromStr, sync::Arc, time::Duration};
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

/// The schema that the tables are in, where the address names none.
const SCHEMA: &str = "abridged";

/// The longest name of a schema, in bytes, as PostgreSQL takes it.
const LONGEST_SCHEMA: usize = 63;

/// How long a connection may take where the address does not say it.
const CONNECT: Duration = Duration::from_secs(5);

/// The parameters that this program reads and the library does not know.
const OURS: [&str; 3] = ["schema", "sslmode", "sslrootcert"];

/// The address of a store.
#[derive(Clone)]
pub struct Address {
    /// Servers, user and database, with the password where it is known.
    pub config: Config,
    /// The schema of the tables.
    pub schema: String,
    /// How the connection is encrypted.
    pub tls: Tls,
    /// The program that prints the password, asked for each connection.
    pub password: Option<Password>,
    /// The address without its password.
    shown: String,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// Not at all.
    Off,
    /// Where the server can, and its certificate is not checked. Only for this machine.
    Opportunistic,
    /// Always, with a certificate that these roots vouch for: those in a file, or those of the system.
    Checked(Option<PathBuf>),
}

/// Gives the password of a connection, or the reason why there is none.
pub type Password = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync>;

/// The reason why a text is no address of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; the form is postgres://user@host:5432/database?schema=abridged")]
pub struct NoAddress(String);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Address {
    /// The same with a password, where the address has none.
    #[must_use]
    pub fn with_password(mut self, password: Option<String>) -> Self {
        if self.config.get_password().is_none()
            && let Some(password) = password
        {
            self.config.password(password);
        }
        self
    }

    /// Whether the address has a password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }
}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(url: &str) -> Result<Self, NoAddress> {
        // A text that is no address is not shown: nobody knows what of it is the password.
        let no = |what: &str| NoAddress(format!("the address of the store is none: {what}"));
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(no("it does not begin with postgres://"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (ours, theirs): (Vec<&str>, Vec<&str>) = query
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .partition(|parameter| OURS.contains(&parameter.split('=').next().unwrap_or_default()));
        let parameter = |name: &str| ours.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('=')).map(decoded);
        let schema = parameter("schema").unwrap_or_else(|| SCHEMA.to_owned());
        if schema.is_empty() || schema.len() > LONGEST_SCHEMA || schema.contains('\0') {
            return Err(no("the name of its schema is empty or too long"));
        }
        let joined = if theirs.is_empty() { base.to_owned() } else { format!("{base}?{}", theirs.join("&")) };
        let mut config: Config = joined.parse().map_err(|error: tokio_postgres::Error| {
            no(&std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let roots = parameter("sslrootcert").map(PathBuf::from);
        let tls = match parameter("sslmode").as_deref() {
            None if roots.is_none() && config.get_hosts().iter().all(is_here) => Tls::Opportunistic,
            Some("disable") => Tls::Off,
            Some("prefer") => Tls::Opportunistic,
            None | Some("require" | "verify-ca" | "verify-full") => Tls::Checked(roots),
            Some(_) => return Err(no("sslmode is disable, prefer, require or verify-full")),
        };
        config.ssl_mode(match tls {
            Tls::Off => SslMode::Disable,
            Tls::Opportunistic => SslMode::Prefer,
            Tls::Checked(_) => SslMode::Require,
        });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("abridged");
        }
        if config.get_hosts().len() > 1 && !query.contains("target_session_attrs") {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let shown = shown(&config, &schema);
        Ok(Self { config, schema, tls, password: None, shown })
    }
}

/// Whether a server is on this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => ["localhost", "127.0.0.1", "::1", "[::1]"].contains(&name.as_str()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// An address without its password and its parameters, for messages.
fn shown(config: &Config, schema: &str) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let ports = config.get_ports();
    let host = |(number, host): (usize, &Host)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        let port = ports.get(number).or_else(|| ports.first()).map(|port| format!(":{port}"));
        format!("{name}{}", port.unwrap_or_default())
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().unwrap_or_default();
    let schema = if schema == SCHEMA { String::new() } else { format!("?schema={schema}") };
    format!("postgres://{user}{}/{database}{schema}", hosts.join(","))
}

/// A parameter without its escapes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Address {
        url.parse().expect("an address")
    }

    #[test]
    fn no_message_has_the_password() {
        for url in [
            "postgres://me:hush@h/db",
            "postgres://me:hu@sh@h:5432/db?schema=x",
            "postgresql://me@h/db?password=hush&connect_timeout=3",
            "postgres://me:hush@h:no/db",
            "me:hush@h",
            "postgres://me:hu?sh@127.0.0.1:55300/abridged",
            "postgres://me@h/db?pass%77ord=hush",
            "postgres://me@h/db?sslpassword=hush",
            "postgres://me@h/db?sslmode=hush",
        ] {
            let shown = url.parse::<Address>().map_or_else(|error| error.to_string(), |it| format!("{it} {it:?}"));
            assert!(!shown.contains("hu"), "{shown}");
        }
        assert_eq!(address("postgres://me:hush@h:5432/db?schema=x").to_string(), "postgres://me@h:5432/db?schema=x");
    }

    #[test]
    fn a_server_elsewhere_is_asked_for_its_certificate() {
        for (url, tls) in [
            ("postgres://h/db", Tls::Checked(None)),
            ("postgres://localhost/db", Tls::Opportunistic),
            ("postgres:///db?host=/run/postgresql", Tls::Opportunistic),
            ("postgres://h/db?sslmode=require", Tls::Checked(None)),
            ("postgres://h/db?sslrootcert=/a%20b.pem", Tls::Checked(Some("/a b.pem".into()))),
            ("postgres://localhost,h/db", Tls::Checked(None)),
            ("postgres://h/db?sslmode=disable", Tls::Off),
        ] {
            assert_eq!(address(url).tls, tls, "{url}");
        }
        assert!("postgres://h/db?sslmode=verify".parse::<Address>().is_err());
    }

    #[test]
    fn a_schema_is_taken_from_the_address() {
        assert_eq!(address("postgres://h/db").schema, "abridged");
        assert_eq!(address("postgres://h/db?schema=team%20a&connect_timeout=2").schema, "team a");
        assert!("postgres://h/db?schema=".parse::<Address>().is_err());
        assert!("mysql://h/db".parse::<Address>().is_err());
        assert!("postgres://h/db?colour=red".parse::<Address>().is_err());
    }
}
