//! MCP over streamable HTTP, for agents that cannot start a program. Only clients on this machine
//! that have the token are served.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::http_listener::{LimitedListener, Peer};
use super::server::{Handler, StatelessClients};
use crate::session::Session;

/// The maximum size of a request's body in bytes, equal to that of a line on the socket.
const BODY_LIMIT: usize = 16 << 20;

/// The reason why the HTTP server does not start.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is reachable from other machines.
    #[error("only loopback addresses are served; use 127.0.0.1:{port} or [::1]:{port}", port = .0.port())]
    NotLoopback(SocketAddr),
    /// The address is in use, or not an address of this machine.
    #[error(
        "cannot listen on {address}: {source}; is another `consort serve --http` running? Port 0 takes any free one"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The token file cannot be created, read or trusted.
    #[error("token file {path}: {reason}")]
    Token {
        /// The file.
        path: PathBuf,
        /// The problem and its remedy.
        reason: String,
    },
}

/// Refuses an address that other machines can reach.
///
/// # Errors
/// [`HttpError::NotLoopback`].
pub fn require_loopback(address: SocketAddr) -> Result<(), HttpError> {
    if address.ip().is_loopback() { Ok(()) } else { Err(HttpError::NotLoopback(address)) }
}

/// A bound address and the token of its clients. Everything that can fail before requests are
/// served is done when the value is created.
pub struct HttpEntrance {
    /// The address, with the actual port.
    address: SocketAddr,
    listener: std::net::TcpListener,
    token: Arc<str>,
    token_file: PathBuf,
}

/// Leaves out the token, which is a secret.
impl fmt::Debug for HttpEntrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEntrance").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HttpEntrance {
    /// Binds a loopback address, and reads the bearer token in `token_file`. The file is created
    /// (mode 0600) if it does not exist.
    ///
    /// # Errors
    /// The address or the token file cannot be used.
    pub fn open(address: SocketAddr, token_file: &Path) -> Result<HttpEntrance, HttpError> {
        require_loopback(address)?;
        let token = token::read_or_make(token_file)
            .map_err(|reason| HttpError::Token { path: token_file.to_owned(), reason })?;
        let bound = std::net::TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = bound.map_err(|source| HttpError::Listen { address, source })?;
        Ok(HttpEntrance { address, listener, token: token.into(), token_file: token_file.to_owned() })
    }
}

/// Starts to serve MCP at `http://ADDRESS/mcp` to clients with the bearer token, until `stop` is
/// cancelled. Requests whose `Host` is not a loopback address are refused. So are requests from a
/// web page (`Origin`) of another machine. Must be called within a Tokio runtime.
///
/// # Errors
/// The runtime cannot watch the socket.
pub fn serve_http(session: Session, entrance: HttpEntrance, stop: CancellationToken) -> io::Result<()> {
    let listener = TcpListener::from_std(entrance.listener)?;
    tracing::info!(
        "MCP at http://{}/mcp for who sends `Authorization: Bearer TOKEN`; the token is in {}",
        entrance.address,
        entrance.token_file.display()
    );
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_max_request_body_bytes(BODY_LIMIT)
        .with_cancellation_token(stop.child_token());
    let stateless = StatelessClients::default();
    let gone = stop.clone();
    let service = StreamableHttpService::new(
        move || Ok(Handler::for_http(session.clone(), stateless.clone(), gone.clone())),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(entrance.token, require_token));
    tokio::spawn(async move {
        let router = router.into_make_service_with_connect_info::<Peer>();
        let served = axum::serve(LimitedListener::new(listener), router)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the HTTP listener ended");
        }
    });
    Ok(())
}

async fn require_token(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    if bearer(request.headers()).is_some_and(|given| same(given.as_bytes(), token.as_bytes())) {
        if let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<Peer>>() {
            peer.note_authenticated();
        }
        if !is_addressed_here(&request) {
            let why = "Forbidden: only requests for `localhost`, `127.0.0.1` or `[::1]` are served, and no page of another machine\n";
            return (StatusCode::FORBIDDEN, why).into_response();
        }
        return match whole_body(request).await {
            Ok(request) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        };
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"consort\"")];
    let why = "Unauthorized: send `Authorization: Bearer TOKEN` with the token from the file that `consort serve --http` names\n";
    (StatusCode::UNAUTHORIZED, challenge, why).into_response()
}

/// Returns the request with its whole body. The body is read here, because the transport would
/// report a body that cannot be read as an error of the server.
async fn whole_body(request: Request) -> Result<Request, (StatusCode, String)> {
    let bad = |why: &str| (StatusCode::BAD_REQUEST, format!("Bad Request: {why}\n"));
    let (head, mut body) = request.into_parts();
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| bad(&format!("the body cannot be read: {error}")))?;
        let Ok(bytes) = frame.into_data() else { continue };
        if whole.len() + bytes.len() > BODY_LIMIT {
            let why = format!("Payload Too Large: a body has at most {BODY_LIMIT} bytes\n");
            return Err((StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(Request::from_parts(head, Body::from(whole)))
}

/// Returns true if each `Host` header, the authority of the URI and `Origin` name this machine, and
/// neither `Host` nor `Origin` is repeated. The transport checks only one of these, and accepts a
/// name that merely begins like an address of this machine.
fn is_addressed_here<B>(request: &axum::http::Request<B>) -> bool {
    let hosts = request.headers().get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut named = hosts.chain(request.uri().authority().map(|authority| authority.as_str()));
    let single = |name| request.headers().get_all(name).iter().nth(1).is_none();
    let is_own = |origin: &HeaderValue| origin.to_str().ok()?.strip_prefix("http://").map(is_loopback);
    named.all(is_loopback)
        && single(header::HOST)
        && single(header::ORIGIN)
        && request.headers().get(header::ORIGIN).is_none_or(|origin| is_own(origin) == Some(true))
}

/// Returns true if `HOST` or `HOST:PORT` is a loopback address.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.find(']') {
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
        && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns true if both are equal. The comparison takes constant time, so that the time does not
/// reveal the number of correct bytes in a guess.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

mod token {
    //! The bearer token in its file.

    use std::fs::{DirBuilder, File, OpenOptions};
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use crate::bounded_file;

    /// The number of random bytes in a token.
    const TOKEN_BYTES: usize = 32;
    /// The maximum size of a token file in bytes.
    const MAX_TOKEN_FILE_BYTES: u64 = 4096;

    /// Returns the token in the file, or a new one if there is no file. A file that other users may
    /// read is refused.
    pub(super) fn read_or_make(path: &Path) -> Result<String, String> {
        if let Some(directory) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => make(file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path),
            Err(error) => Err(error.to_string()),
        }
    }

    fn make(mut file: File) -> Result<String, String> {
        let mut random = [0; TOKEN_BYTES];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(|error| format!("no random bytes from /dev/urandom: {error}"))?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(file, "{token}").map_err(|error| error.to_string())?;
        Ok(token)
    }

    fn read(path: &Path) -> Result<String, String> {
        let (file, facts) = bounded_file::open(path).map_err(|error| error.to_string())?;
        if facts.mode() & 0o077 != 0 {
            return Err(format!(
                "others may read it (mode {:04o}); remove it, and a new one is made",
                facts.mode() & 0o7777
            ));
        }
        if facts.uid() != rustix::process::geteuid().as_raw() {
            return Err("it belongs to another user; remove it, and a new one is made".into());
        }
        let bytes = bounded_file::contents(file, MAX_TOKEN_FILE_BYTES).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        let token = text.trim();
        if token.len() < TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "it holds no token of at least {TOKEN_BYTES} characters; remove it, and a new one is made"
            ));
        }
        Ok(token.to_owned())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_token_is_made_once_private_and_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let token = token::read_or_make(&path).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(token::read_or_make(&path).unwrap(), token);
    }

    #[test]
    fn a_token_that_others_may_read_or_that_is_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "a".repeat(64)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(token::read_or_make(&path).unwrap_err().contains("others may read it"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "\n").unwrap();
        assert!(token::read_or_make(&path).unwrap_err().contains("holds no token"));
    }

    #[test]
    fn a_request_names_this_machine_and_nothing_else() {
        let passes = |uri: &str, headers: &[(header::HeaderName, &str)]| {
            let mut request = axum::http::Request::builder().uri(uri);
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            is_addressed_here(&request.body(()).unwrap())
        };
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]", "[::1]:80"] {
            assert!(passes("/mcp", &[(header::HOST, host)]), "{host}");
        }
        for host in [
            "[::1].evil.example",
            "[::1]:80.evil.example",
            "127.0.0.1:80@evil.example",
            "localhost:",
            "",
            "evil.example",
        ] {
            assert!(!passes("/mcp", &[(header::HOST, host)]), "{host}");
        }
        assert!(!passes("/mcp", &[(header::HOST, "localhost"), (header::HOST, "evil.example")]));
        assert!(!passes("http://evil.example/mcp", &[(header::HOST, "localhost")]));
        let origin = "http://localhost:1";
        assert!(passes("/mcp", &[(header::ORIGIN, origin)]));
        for origin in
            ["http://localhost:80.evil.com", "http://localhost.evil.com", "http://localhost:80@evil.com", "null", ""]
        {
            assert!(!passes("/mcp", &[(header::ORIGIN, origin)]), "{origin}");
        }
        assert!(!passes("/mcp", &[(header::ORIGIN, origin), (header::ORIGIN, "http://evil.example")]));
    }

    #[tokio::test]
    async fn a_body_that_cannot_be_read_is_the_clients_fault() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        // The transport answers in the same way.
        let read = |body: Body| async move {
            let whole = axum::body::to_bytes(body, BODY_LIMIT).await;
            if whole.is_ok() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }
        };
        let router = Router::new()
            .route("/mcp", axum::routing::post(read))
            .layer(middleware::from_fn_with_state(Arc::<str>::from("token"), require_token));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let answer = async |headers: &str, body: &str| {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token\r\nConnection: close\r\n";
            stream.write_all(format!("{head}{headers}\r\n\r\n{body}").as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            // A part of the body may be left unread, which resets the connection.
            let _ = stream.read_to_end(&mut answer).await;
            String::from_utf8_lossy(&answer).split(' ').nth(1).map(str::to_owned)
        };
        let chunked = "Transfer-Encoding: chunked";
        assert_eq!(answer(chunked, "2\r\n{}\r\n0\r\n\r\n").await.as_deref(), Some("200"));
        assert_eq!(answer(chunked, "zz\r\n{}\r\n0\r\n\r\n").await.as_deref(), Some("400"));
        let both = format!("Content-Length: 2\r\n{chunked}");
        assert_eq!(answer(&both, "{}").await.as_deref(), Some("400"));
    }

    #[test]
    fn only_the_whole_token_passes() {
        assert!(same(b"abc", b"abc"));
        assert!(!same(b"abc", b"abd") && !same(b"ab", b"abc") && !same(b"", b"a"));
        let mut headers = HeaderMap::new();
        assert_eq!(bearer(&headers), None);
        headers.insert(header::AUTHORIZATION, "bearer abc".parse().unwrap());
        assert_eq!(bearer(&headers), Some("abc"));
        headers.insert(header::AUTHORIZATION, "Basic abc".parse().unwrap());
        assert_eq!(bearer(&headers), None);
    }
}
