//! Addresses of servers.

use std::net::IpAddr;

/// Whether a URL is an address of this machine.
#[must_use]
pub fn is_local(url: &str) -> bool {
    let url = reqwest::Url::parse(url.trim()).ok();
    let Some(host) = url.as_ref().and_then(reqwest::Url::host_str) else { return false };
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}
