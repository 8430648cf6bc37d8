//! Texts of providers without what was sent to them in secret.

use crate::{provider::Endpoint, redact::secret::Secret};

/// A text without the key and whatever else an endpoint keeps to itself: headers, and what stands in its address beside
/// host and path.
#[must_use]
pub fn without_secrets(text: String, endpoint: &Endpoint, key: Option<&Secret>) -> String {
    // A backslash right before a secret, or in it, is no escape where the text quotes the secret as it is.
    let text = without_secrets_as_it_stands(text, endpoint, key);
    if !text.contains('\\') {
        return text;
    }
    // What was escaped on its way is the same secret.
    replaced(unescaped(&text), secrets(endpoint, key).into_iter().map(unescaped))
}

/// The same for a text that stands as it was sent.
#[must_use]
pub fn without_secrets_as_it_stands(text: String, endpoint: &Endpoint, key: Option<&Secret>) -> String {
    replaced(text, secrets(endpoint, key).into_iter().map(str::to_owned))
}

/// The place in a text from which on it may be the beginning of a secret whose end has not come: the length of the text where it
/// is none.
#[must_use]
pub fn beginning_of_secret(text: &str, endpoint: &Endpoint, key: Option<&Secret>) -> usize {
    let held = |secret: &str| {
        let longest = (secret.len() - 1).min(text.len());
        (1..=longest).rev().find(|length| text.as_bytes().ends_with(&secret.as_bytes()[..*length]))
    };
    let secrets = secrets(endpoint, key).into_iter().filter(|secret| secret.len() >= SHORTEST);
    let mut end = text.len() - secrets.filter_map(held).max().unwrap_or(0);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Shorter texts are no secrets, and parts of common words.
const SHORTEST: usize = 8;

/// The key, the values of headers, and what stands in the address beside host and path.
fn secrets<'a>(endpoint: &'a Endpoint, key: Option<&'a Secret>) -> Vec<&'a str> {
    let (base, query) = endpoint.base_url.split_once('?').unwrap_or((&endpoint.base_url, ""));
    let user = base.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map_or("", |(user, _)| user);
    let address = query.split('&').chain(user.split(':')).map(|it| it.split_once('=').map_or(it, |(_, value)| value));
    let headers = endpoint.headers.iter().map(|(_, value)| value.reveal());
    // `Bearer …`: what is after the word is the secret, wherever it is quoted.
    key.map(Secret::reveal).into_iter().chain(headers.flat_map(str::split_whitespace)).chain(address).collect()
}

fn replaced(text: String, secrets: impl Iterator<Item = String>) -> String {
    let mut secrets: Vec<String> = secrets.filter(|secret| secret.len() >= SHORTEST).collect();
    // The longest first: one may stand in another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.into_iter().fold(text, |text, secret| text.replace(&secret, "[REDACTED:key]"))
}

/// A text without JSON's escapes, however often it was escaped.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = rest[at..].trim_start_matches('\\');
        let code = rest.strip_prefix('u').and_then(|rest| rest.get(..4));
        match code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?)) {
            Some(char) => {
                out.push(char);
                rest = &rest[5..];
            }
            None if rest.starts_with(['n', 'r', 't']) => {
                out.push(' ');
                rest = &rest[1..];
            }
            None => {}
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Api, KeySource};

    #[test]
    fn what_was_sent_in_secret_is_not_told() {
        let endpoint = Endpoint {
            api: Api::Anthropic,
            base_url: "https://somebody:pass-word@h/v1?token=in-the-address&v=1".to_owned(),
            key: KeySource::None,
            headers: vec![("x-proxy".to_owned(), Secret::from("Bearer for-the-proxy".to_owned()))],
        };
        let text = "wrong: key-of-theirs, for-the-proxy, in-the-address, pass-word, h, v1".to_owned();
        let key = Secret::from("key-of-theirs".to_owned());
        let told = without_secrets(text, &endpoint, Some(&key));
        let gone = "[REDACTED:key]";
        assert_eq!(told, format!("wrong: {gone}, {gone}, {gone}, {gone}, h, v1"));
    }
    #[test]
    fn a_backslash_beside_a_key_or_in_it_hides_nothing_of_it() {
        let base_url = "https://h/v1".to_owned();
        let endpoint = Endpoint { api: Api::OpenaiChat, base_url, key: KeySource::None, headers: Vec::new() };
        for (key, said) in [
            ("nvapi-0123456789", r"wrong: \nvapi-0123456789"),
            (r"back\slash-012345", r"wrong: back\slash-012345"),
            (r"back\slash-012345", r#"wrong: \"back\\slash-012345\""#),
            ("\"quoted\"-0123456", r#"{"key": "\"quoted\"-0123456"}"#),
        ] {
            let told = without_secrets(said.to_owned(), &endpoint, Some(&Secret::from(key.to_owned())));
            assert!(told.contains("[REDACTED:key]"), "{told}");
            assert!(!told.contains("0123456") && !told.contains("012345"), "{told}");
        }
    }
}
