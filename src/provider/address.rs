//! Addresses of servers, and the form in which they may be shown.

pub mod withheld;

/// Whether a URL is an address of this machine.
#[must_use]
pub fn is_local(url: &str) -> bool {
    let Some(host) = host(url.trim()) else { return false };
    let is_name = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    let is_number = host.starts_with("127.") && host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_name || is_number || ["0.0.0.0", "[::]", "[::1]"].contains(&host) || host.starts_with("[::ffff:127.")
}

/// An address without user, password, query and fragment: each of them may be a key.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{host}{path}")
}

/// The host of a URL, with the brackets of an address.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let place = authority.rsplit('@').next()?;
    match place.find(']') {
        Some(end) if place.starts_with('[') => Some(&place[..=end]),
        _ => place.split(':').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine() {
        for (url, local) in [
            ("http://127.0.0.1:11434/v1", true),
            ("http://127.1/", true),
            ("http://Localhost:8080", true),
            ("http://models.localhost/", true),
            ("http://name:secret@localhost/", true),
            ("http://[::1]:1/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://0.0.0.0:1/", true),
            ("http://127.example.com/", false),
            ("http://10.0.0.1/", false),
            ("https://localhost@example.com/", false),
            ("https://api.example.com/localhost", false),
            ("not an address", false),
        ] {
            assert_eq!(is_local(url), local, "{url}");
        }
    }

    #[test]
    fn an_address_lets_nobody_in() {
        for (url, told) in [
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
            ("https://me:secret@host/v1?key=secret#secret", "https://host/v1"),
            ("https://secret@host", "https://host"),
            ("https://a@b:secret@host/p@th", "https://host/p@th"),
            ("me:secret@host/v1", "host/v1"),
        ] {
            assert_eq!(without_credentials(url), told);
        }
    }
}
