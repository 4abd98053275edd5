//! Limits for HTTP connections that have not yet sent the token. Such connections are few and
//! short-lived. They never take the place of editors, or of connections that are about to send the
//! token.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time limit for a connection to send a request with the token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The age from which a connection that has not sent the token may be ended to make room for
/// another. The head of a request takes less time.
const MIN_AGE_TO_END: Duration = Duration::from_secs(3);
/// The number of connections without the token. If there are so many, a further one ends the
/// oldest, if that is older than [`MIN_AGE_TO_END`].
const MAX_UNAUTHENTICATED: usize = 32;
/// The maximum number of all connections, less [`MAX_UNAUTHENTICATED`]. It is smaller if this
/// process may open few file descriptors. A further connection ends the oldest without the token.
const MAX_AUTHENTICATED: usize = 256;
/// The pause after a connection could not be accepted, and the maximum wait for the end of one.
const PAUSE: Duration = Duration::from_millis(100);

/// The state of one connection, shared by the listener and the requests.
#[derive(Debug, Clone)]
pub(super) struct Peer(Arc<State>);

#[derive(Debug)]
struct State {
    authenticated: AtomicBool,
    since: Instant,
    /// Cancelled to end the connection and free its place.
    leave: CancellationToken,
}

impl Peer {
    /// Records that a request on this connection had the token.
    pub(super) fn note_authenticated(&self) {
        self.0.authenticated.store(true, Ordering::Release);
    }
}

impl Connected<IncomingStream<'_, LimitedListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, LimitedListener>) -> Peer {
        Peer(stream.io().state.clone())
    }
}

/// A listener that enforces the limits of this module.
#[derive(Debug)]
pub(super) struct LimitedListener {
    listener: TcpListener,
    /// The connections that have not sent the token, the oldest first.
    unauthenticated: VecDeque<Weak<State>>,
    open: Arc<AtomicUsize>,
    /// Notified when a connection has ended.
    freed: Arc<Notify>,
    most: usize,
    min_age_to_end: Duration,
    token_timeout: Duration,
}

impl LimitedListener {
    pub(super) fn new(listener: TcpListener) -> LimitedListener {
        // The other three quarters of the file descriptors are for editors, agents on the socket,
        // the image and its copies.
        let limit = getrlimit(Resource::Nofile)
            .current
            .map_or(MAX_AUTHENTICATED, |limit| usize::try_from(limit / 4).unwrap_or(MAX_AUTHENTICATED));
        LimitedListener {
            listener,
            unauthenticated: VecDeque::new(),
            open: Arc::default(),
            freed: Arc::default(),
            most: MAX_AUTHENTICATED.min(limit).max(1),
            min_age_to_end: MIN_AGE_TO_END,
            token_timeout: TOKEN_TIMEOUT,
        }
    }

    /// Ends connections until there is room for one more. Returns false if all have sent the token.
    async fn make_room(&mut self) -> bool {
        self.unauthenticated
            .retain(|state| state.upgrade().is_some_and(|state| !state.authenticated.load(Ordering::Acquire)));
        while self.unauthenticated.len() >= MAX_UNAUTHENTICATED.min(self.most) {
            let late = self
                .unauthenticated
                .front()
                .and_then(Weak::upgrade)
                .filter(|state| state.since.elapsed() >= self.min_age_to_end);
            let Some(late) = late else { break };
            late.leave.cancel();
            self.unauthenticated.pop_front();
        }
        loop {
            let open = self.open.load(Ordering::Acquire);
            if open < self.most + MAX_UNAUTHENTICATED {
                return true;
            }
            let Some(oldest) = self.unauthenticated.pop_front() else { return false };
            oldest.upgrade().inspect(|oldest| oldest.leave.cancel());
            let freed = async {
                while self.open.load(Ordering::Acquire) >= open {
                    self.freed.notified().await;
                }
            };
            if tokio::time::timeout(PAUSE, freed).await.is_err() {
                // The connection will end. The machine is only too busy to end it in time.
                return true;
            }
        }
    }

    fn admit(&mut self, stream: TcpStream) -> LimitedStream {
        self.open.fetch_add(1, Ordering::AcqRel);
        let (authenticated, leave) = (AtomicBool::new(false), CancellationToken::new());
        let state = Arc::new(State { authenticated, since: Instant::now(), leave });
        self.unauthenticated.push_back(Arc::downgrade(&state));
        let (leave, token_timeout) = (state.leave.clone(), self.token_timeout);
        let over = Box::pin(async move {
            tokio::select! {
                () = leave.cancelled() => {}
                () = tokio::time::sleep(token_timeout) => {}
            }
        });
        let open = Open { open: self.open.clone(), freed: self.freed.clone() };
        LimitedStream { stream, state, over: Some(over), open }
    }
}

impl Listener for LimitedListener {
    type Io = LimitedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    if self.make_room().await {
                        return (self.admit(stream), address);
                    }
                    tracing::warn!("too many connections over HTTP; one was closed");
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection over HTTP could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Counts a connection until it is dropped.
#[derive(Debug)]
struct Open {
    open: Arc<AtomicUsize>,
    freed: Arc<Notify>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.freed.notify_one();
    }
}

/// A connection that fails if it has not sent the token in time, or if it is ended earlier to make
/// room for another one.
pub(super) struct LimitedStream {
    stream: TcpStream,
    state: Arc<State>,
    /// Resolves at the time limit, or when `State::leave` is cancelled; `None` once the token was
    /// sent.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    #[allow(dead_code, reason = "it counts")]
    open: Open,
}

impl LimitedStream {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.state.authenticated.load(Ordering::Acquire) {
            self.over = None;
        }
        let Some(over) = &mut self.over else { return Ok(()) };
        if over.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "no request has shown the token in time"))
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Err(error) = this.check(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Err(error) = this.check(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Err(error) = this.check(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut this.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::patience;
    use axum::Router;
    use axum::extract::ConnectInfo;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const LONG: Duration = Duration::from_secs(3600);

    /// Starts a server that treats a request to `/known` as one with the token.
    async fn listening(token_timeout: Duration) -> (SocketAddr, Arc<AtomicUsize>) {
        listening_to(MAX_AUTHENTICATED, Duration::ZERO, token_timeout).await
    }

    /// Starts such a server with these limits.
    async fn listening_to(
        most: usize,
        min_age_to_end: Duration,
        token_timeout: Duration,
    ) -> (SocketAddr, Arc<AtomicUsize>) {
        let mut limited = LimitedListener::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        (limited.most, limited.min_age_to_end, limited.token_timeout) = (most, min_age_to_end, token_timeout);
        let (address, open) = (limited.local_addr().unwrap(), limited.open.clone());
        let router = Router::new().route("/stranger", get(|| async { "no" })).route(
            "/known",
            get(|ConnectInfo(peer): ConnectInfo<Peer>| async move {
                peer.note_authenticated();
                "yes"
            }),
        );
        let router = router.into_make_service_with_connect_info::<Peer>();
        tokio::spawn(async move { axum::serve(limited, router).await });
        (address, open)
    }

    async fn ask(stream: &mut TcpStream, path: &str) -> String {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..count]).into_owned()
    }

    async fn ended(stream: &mut TcpStream) {
        let mut rest = Vec::new();
        // A reset also ends the connection.
        let _ = stream.read_to_end(&mut rest).await;
    }

    #[tokio::test]
    async fn who_does_not_show_the_token_in_time_is_disconnected_and_who_did_stays() {
        let (address, open) = listening(Duration::from_secs(2)).await;
        let mut known = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut known, "/known").await.ends_with("yes"));
        let mut idle = TcpStream::connect(address).await.unwrap();
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET /known HTTP/1.1\r\nHost:").await.unwrap();
        let mut stranger = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut stranger, "/stranger").await.ends_with("no"));
        for stream in [&mut idle, &mut slow, &mut stranger] {
            ended(stream).await;
        }
        assert!(ask(&mut known, "/known").await.ends_with("yes"));
        assert_eq!(open.load(Ordering::Acquire), 1);
    }

    #[tokio::test]
    async fn many_idle_connections_make_room_for_the_next() {
        let (address, open) = listening(LONG).await;
        let mut known = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut known, "/known").await.ends_with("yes"));
        let mut idle = Vec::new();
        for _ in 0..MAX_UNAUTHENTICATED * 3 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut late = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut late, "/known").await.ends_with("yes"));
        ended(&mut idle[0]).await;
        assert!(open.load(Ordering::Acquire) <= MAX_UNAUTHENTICATED + 2 + 1);
        assert!(ask(&mut known, "/known").await.ends_with("yes"));
    }

    /// Returns connections that have sent a part of a head.
    async fn begun(address: SocketAddr, count: usize) -> Vec<TcpStream> {
        let mut begun = Vec::new();
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /known HTTP/1.1\r\nHost: x\r\n").await.unwrap();
            begun.push(stream);
        }
        begun
    }

    #[tokio::test]
    async fn slow_connections_cost_no_request_that_is_being_sent() {
        let (address, open) = listening_to(MAX_AUTHENTICATED, LONG, LONG).await;
        let mut good = begun(address, 30).await;
        let slow = begun(address, 8).await;
        patience::comes("all are accepted", async || (open.load(Ordering::Acquire) == 38).then_some(())).await;
        for stream in &mut good {
            stream.write_all(b"\r\n").await.unwrap();
            let mut answer = vec![0; 4096];
            let count = stream.read(&mut answer).await.unwrap();
            assert!(answer[..count].ends_with(b"yes"), "{:?}", String::from_utf8_lossy(&answer[..count]));
        }
        drop(slow);
    }

    #[tokio::test]
    async fn there_is_a_limit_of_all_and_the_oldest_without_the_token_makes_room() {
        let (address, open) = listening_to(2, LONG, LONG).await;
        let mut known = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut known, "/known").await.ends_with("yes"));
        let mut slow = begun(address, 2 * MAX_UNAUTHENTICATED).await;
        let mut late = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut late, "/known").await.ends_with("yes"));
        ended(&mut slow[0]).await;
        patience::comes("the limit is kept", async || {
            (open.load(Ordering::Acquire) <= 2 + MAX_UNAUTHENTICATED).then_some(())
        })
        .await;
        assert!(ask(&mut known, "/known").await.ends_with("yes"));
    }
}
