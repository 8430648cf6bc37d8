//! Secrets of settings in a recording: each is replaced by a mask. Equal secrets of one recording have the same mask, so a
//! replay sees which settings changed. No secret can be found from its mask.

use super::Request;
use crate::{
    provider::address::without_credentials,
    settings::{
        Layers,
        masked::{self, Part},
    },
};
use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};

/// Replaces secrets.
#[derive(Debug, Clone, Copy)]
pub struct Mask {
    /// A random number that is not in the recording.
    salt: u128,
}

impl Mask {
    /// A mask with this salt.
    #[must_use]
    pub fn new(salt: u128) -> Self {
        Self { salt }
    }

    /// Replaces the secrets of settings. An address stays one.
    pub fn settings(&self, settings: &mut Value) {
        masked::mask(settings, &|part, text| {
            let hash = Sha256::new().chain_update(self.salt.to_le_bytes()).chain_update(text).finalize();
            match part {
                Part::Whole => format!("masked-{hash:x}"),
                Part::Address => format!("{}?masked-{hash:x}", without_credentials(text)),
            }
        });
    }

    /// Layers without secrets.
    #[must_use]
    pub fn layers(&self, layers: &Layers) -> Layers {
        layers.changed(|layer| self.settings(layer))
    }

    /// Replaces the secrets of settings in the params of a request.
    pub fn request(&self, request: &mut Request) {
        let may_have_some = |params: &str| ["\"settings\"", "\"patch\""].iter().any(|part| params.contains(part));
        let Some(params) = request.params.as_ref().filter(|params| may_have_some(params.get())) else { return };
        let Ok(mut value) = serde_json::from_str::<Value>(params.get()) else { return };
        let before = value.clone();
        for part in ["settings", "patch"] {
            if let Some(settings) = value.get_mut(part) {
                self.settings(settings);
            }
        }
        if value != before {
            request.params = RawValue::from_string(value.to_string()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(params: &Value) -> Request {
        let params = RawValue::from_string(params.to_string()).ok();
        Request { id: None, method: "settings/set".to_owned(), params }
    }

    #[test]
    fn headers_are_masked_and_equal_ones_stay_equal() {
        let models = |key: &str| json!([{"provider": "a", "id": "b", "headers": {"x-key": key}}]);
        let masked = |salt: u128, key: &str| {
            let mut settings = json!({"models": models(key), "defaultModel": "a/b"});
            Mask::new(salt).settings(&mut settings);
            assert!(!settings.to_string().contains(key), "{settings}");
            settings
        };
        assert_eq!(masked(1, "hush"), masked(1, "hush"));
        assert_ne!(masked(1, "hush"), masked(1, "hush-2"));
        assert_ne!(masked(1, "hush"), masked(2, "hush"));
        let mut with = request(&json!({"sessionId": "s", "patch": {"models": models("hush")}}));
        Mask::new(1).request(&mut with);
        assert!(with.params.is_some_and(|params| !params.get().contains("hush") && params.get().contains("masked-")));
        // A message is recorded byte for byte.
        let message = json!({"messages": [{"models": models("said")}], "patch": {"title": "of the text"}});
        let mut without = request(&message);
        Mask::new(1).request(&mut without);
        assert_eq!(without.params.map(|params| params.get().to_owned()), Some(message.to_string()));
    }
}
