//! The provider behind TLS, with a certificate made when it starts.

use super::{Format, Provider};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use std::{ops::Deref, sync::Arc};

/// A provider of `https://` addresses; everything else is asked of it as of a [`Provider`].
pub struct Tls {
    provider: Provider,
    ca_pem: Option<String>,
}

impl Tls {
    /// Its certificate is good for whoever trusts [`Tls::ca_pem`].
    pub fn start(format: Format) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = named("The certificate authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_pem = pem(params.self_signed(&key).expect("a certificate").der());
        let own = KeyPair::generate().expect("a key");
        let certificate = loopback().signed_by(&own, &Issuer::new(params, key)).expect("a certificate");
        Self { provider: serve(format, certificate.der(), &own), ca_pem: Some(ca_pem) }
    }

    /// Its certificate is signed by nobody but itself.
    pub fn untrusted(format: Format) -> Self {
        let own = KeyPair::generate().expect("a key");
        let certificate = loopback().self_signed(&own).expect("a certificate");
        Self { provider: serve(format, certificate.der(), &own), ca_pem: None }
    }

    /// Certificate for the file that `SSL_CERT_FILE` names, on platforms that read it (not macOS and Windows).
    pub fn ca_pem(&self) -> &str {
        self.ca_pem.as_deref().expect("a certificate that can be trusted")
    }
}

impl Deref for Tls {
    type Target = Provider;

    fn deref(&self) -> &Provider {
        &self.provider
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn loopback() -> CertificateParams {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = named("The provider of a test");
    params.subject_alt_names = CertificateParams::new(names).expect("names").subject_alt_names;
    params
}

fn pem(certificate: &CertificateDer<'static>) -> String {
    let text = STANDARD.encode(certificate);
    // Some readers take no longer lines.
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

fn serve(format: Format, certificate: &CertificateDer<'static>, key: &KeyPair) -> Provider {
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(vec![certificate.clone()], key.into()))
        .expect("a configuration");
    let config = Arc::new(config);
    let wrap = move |socket| -> Box<dyn super::Stream> {
        let connection = ServerConnection::new(config.clone()).expect("a connection");
        Box::new(StreamOwned::new(connection, socket))
    };
    Provider::over(format, "https", Arc::new(wrap))
}

mod tests {
    use super::Tls;
    use crate::provider::{Format, Step};
    use rustls::{
        ClientConfig, ClientConnection, RootCertStore, StreamOwned,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    };
    use std::{
        io::{Read, Write},
        net::TcpStream,
        sync::Arc,
    };

    /// A connection that trusts these certificates and asked for a stream.
    fn ask(tls: &Tls, trusted: &str) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).expect("PEM")).expect("a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        let mut stream = StreamOwned::new(connection, TcpStream::connect(tls.address()).expect("a connection"));
        let body = r#"{"model":"m","stream":true,"store":false,"input":"Hello"}"#;
        let length = body.len();
        write!(
            stream,
            "POST /v1/responses HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        stream.flush()?;
        Ok(stream)
    }

    #[test]
    fn who_trusts_the_authority_is_answered() {
        let tls = Tls::start(Format::OpenAiResponses);
        assert!(tls.base_url().starts_with("https://127.0.0.1:") && tls.base_url().ends_with("/v1"));
        tls.script([Step::answer("Behind TLS.").pieces(1).split_utf8().cut_after(99), Step::hang()]);
        let mut heard = Vec::new();
        // It ends as a cut connection ends there: without a goodbye.
        assert!(ask(&tls, tls.ca_pem()).expect("an answer").read_to_end(&mut heard).is_err());
        assert!(heard.starts_with(b"HTTP/1.1 200 OK\r\n"));
        let client = ask(&tls, tls.ca_pem());
        tls.wait_for(2);
        drop(client);
        assert!(tls.wait_for_close(1)[0].complete);
    }

    #[test]
    fn who_does_not_says_nothing() {
        let trusted = Tls::start(Format::OpenAiResponses);
        for tls in [Tls::untrusted(Format::OpenAiResponses), Tls::start(Format::OpenAiResponses)] {
            let error = ask(&tls, trusted.ca_pem()).map(|_| ()).expect_err("an unknown certificate");
            assert!(error.to_string().contains("invalid peer certificate"), "{error}");
            assert!(tls.asked().is_empty());
        }
    }
}
