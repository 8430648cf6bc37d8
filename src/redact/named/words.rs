//! The words that tell names and values.

use std::{collections::HashSet, sync::LazyLock};

type Words = LazyLock<HashSet<&'static str>>;

fn set(words: &'static str) -> HashSet<&'static str> {
    words.split_ascii_whitespace().collect()
}

/// A name that ends so says something about a secret.
pub(super) static ABOUT: Words = LazyLock::new(|| {
    set("\
        count counts type types limit limits usage name names url uri path file files dir len length size ttl expiry \
        expires expiration regex pattern field header prefix suffix param label policy version endpoint budget \
        estimate estimator arn ref index kind format mode rotation manager provider placeholder hint strength min \
        max rules scope scopes enabled required reset at in algorithm date age window used usd stream env example \
        description title message error test tests")
});

/// A key of this is a secret.
pub(super) static KEYS: Words = LazyLock::new(|| {
    set("\
        access account admin api app application auth authentication consumer crypto decryption deploy encryption \
        hmac jwt license master private preshared secret service shared signing ssh storage subscription webhook \
        write wg fernet rsa openai anthropic cohere mistral gemini groq deepseek together stripe mailgun sendgrid \
        datadog heroku cloudflare algolia azure aws gcp google twilio functions rapidapi")
});

/// A key of this is none.
pub(super) static HARMLESS: Words = LazyLock::new(|| {
    set("\
        public primary foreign cache sort partition host known index row object map lookup hash unique composite \
        group registry hkey idempotency dedupe")
});

/// Values that stand for any: types, states, and the words of a manual.
pub(super) static DICTIONARY: Words = LazyLock::new(|| {
    set("\
        string str text number integer boolean bool none null undefined true false required optional option object \
        unknown secret secrets token password passwd example changeme redacted your this that with from into type \
        field value input hidden bytes char await async function return default credentials passphrase missing \
        invalid masked empty username varchar description disabled enabled mandatory unchanged incorrect wrong expired failed success \
        accepted rejected denied provided protected encrypted plaintext supported unsupported deprecated sensitive private \
        public internal nullable cleared removed deleted created updated changed rotated erforderlich obligatoire \
        obligatorio obligatoria obrigatória obbligatoria verplicht nullptr nil void self")
});

/// Words of a sentence about a secret.
pub(super) static PROSE: Words = LazyLock::new(|| {
    set("\
        password passwort your please must enter invalid should cannot token")
});
