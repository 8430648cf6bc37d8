//! Addresses of servers, as they may be shown.

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

#[cfg(test)]
mod tests {
    use super::*;

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
