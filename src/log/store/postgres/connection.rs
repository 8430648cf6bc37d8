//! One connection to the database, which is made again when it is needed.

#![expect(clippy::disallowed_methods, reason = "reads certificates, and waits")]

use super::faults;
use crate::log::store::{
    address::{Address, Tls},
    server::Fault,
};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_postgres::{AsyncMessage, Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The least time between two attempts to connect.
const BETWEEN: Duration = Duration::from_millis(100);

/// A connection that is made when it is needed.
#[derive(Debug)]
pub(super) struct Connection {
    address: Address,
    state: AsyncMutex<State>,
    heard: Heard,
    ended: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    client: Option<Arc<Client>>,
    failed: Option<(Instant, Fault)>,
}

/// Takes the payloads of notifications.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Option<Hears>>>);

/// A function that takes payloads.
type Hears = Box<dyn Fn(&str) + Send>;

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Heard")
    }
}

impl Heard {
    /// Sets the function that takes them.
    pub(super) fn set(&self, take: impl Fn(&str) + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(take));
    }

    fn tell(&self, payload: &str) {
        if let Some(take) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            take(payload);
        }
    }
}

impl Connection {
    pub(super) fn new(address: Address) -> Self {
        Self { address, state: AsyncMutex::default(), heard: Heard::default(), ended: Arc::default() }
    }

    /// The function that takes notifications.
    pub(super) fn heard(&self) -> &Heard {
        &self.heard
    }

    /// Waits until a client that was connected has ended.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// A client that is connected, and whether it is a new one.
    pub(super) async fn client(&self) -> Result<(Arc<Client>, bool), Fault> {
        let mut state = self.state.lock().await;
        if let Some(client) = state.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok((client.clone(), false));
        }
        state.client = None;
        if let Some((at, fault)) = &state.failed
            && at.elapsed() < BETWEEN
        {
            return Err(fault.clone());
        }
        match self.connect().await {
            Ok(client) => {
                let client = Arc::new(client);
                state.client = Some(client.clone());
                state.failed = None;
                Ok((client, true))
            }
            Err(fault) => {
                state.failed = Some((Instant::now(), fault.clone()));
                Err(fault)
            }
        }
    }

    /// Ends a connection that does not answer.
    pub(super) async fn drop_client(&self) {
        self.state.lock().await.client = None;
    }

    async fn connect(&self) -> Result<Client, Fault> {
        let longest = self.address.config.get_connect_timeout().copied().unwrap_or_default() * 2;
        match tokio::time::timeout(longest.max(Duration::from_secs(1)), self.connected()).await {
            Ok(connected) => connected,
            Err(_) => Err(Fault::Away("no answer to the connection".to_owned())),
        }
    }

    async fn connected(&self) -> Result<Client, Fault> {
        let mut config = self.address.config.clone();
        if let Some(password) = &self.address.password {
            let unknown = |why| Fault::Refused { why: format!("its password is not known: {why}"), retryable: true };
            config.password(password().await.map_err(unknown)?);
        }
        if self.address.tls == Tls::Off {
            let (client, connection) = config.connect(NoTls).await.map_err(|it| faults::unconnected(&it))?;
            self.serve(connection);
            return Ok(client);
        }
        let tls = MakeRustlsConnect::new(encryption(&self.address.tls)?);
        let (client, connection) = config.connect(tls).await.map_err(|it| faults::unconnected(&it))?;
        self.serve(connection);
        Ok(client)
    }

    fn serve<S, T>(&self, mut connection: tokio_postgres::Connection<S, T>)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (heard, ended) = (self.heard.clone(), self.ended.clone());
        tokio::spawn(async move {
            loop {
                match std::future::poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(notification))) => heard.tell(notification.payload()),
                    Some(Ok(AsyncMessage::Notice(notice))) => tracing::debug!(notice = notice.message(), "the store"),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        tracing::debug!(%error, "a connection to the store has ended");
                        break;
                    }
                    None => break,
                }
            }
            ended.notify_one();
        });
    }
}

/// Encryption with the roots of an address.
fn encryption(tls: &Tls) -> Result<ClientConfig, Fault> {
    let refused = |why: String| Fault::Refused { why, retryable: false };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(error.to_string()))?;
    Ok(match tls {
        Tls::Checked(None) => {
            builder.with_platform_verifier().map_err(|error| refused(error.to_string()))?.with_no_client_auth()
        }
        Tls::Checked(Some(file)) => {
            let unread = |error: String| refused(format!("sslrootcert {} cannot be read: {error}", file.display()));
            let mut roots = RootCertStore::empty();
            for root in CertificateDer::pem_file_iter(file).map_err(|error| unread(error.to_string()))? {
                let root = root.map_err(|error| unread(error.to_string()))?;
                roots.add(root).map_err(|error| unread(error.to_string()))?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Tls::Off | Tls::Opportunistic => {
            let unchecked = Arc::new(Unchecked(provider));
            builder.dangerous().with_custom_certificate_verifier(unchecked).with_no_client_auth()
        }
    })
}

/// Takes any certificate: the server is on this machine, or the address says `prefer`.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
