//! The environment of a run: time of day, random numbers and connections. All three come from the machine, or
//! are simulated, so that a run repeats exactly.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::locked::locked;

/// A connection to an address.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection to a name or address, and a port.
pub type Dial = dyn Fn(&str, u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> + Send + Sync;

/// The environment of a run. Clones share their random numbers.
#[derive(Clone)]
pub struct Env {
    /// `None` on the real machine.
    simulated: Option<Arc<Simulated>>,
}

struct Simulated {
    /// The time of day at `began`, by the clock as it is set now.
    epoch: Mutex<Timestamp>,
    began: Instant,
    chance: Mutex<ChaCha8Rng>,
    dial: Arc<Dial>,
}

impl Env {
    pub fn system() -> Self {
        Self { simulated: None }
    }

    /// A simulated environment: it is now `epoch`, time passes as the runtime's clock does, and `seed`
    /// determines the random numbers. Call it within a runtime.
    pub fn simulated(epoch: Timestamp, seed: u64, dial: Arc<Dial>) -> Self {
        let simulated = Simulated {
            epoch: Mutex::new(epoch),
            began: Instant::now(),
            chance: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            dial,
        };
        Self {
            simulated: Some(Arc::new(simulated)),
        }
    }

    /// Whether this environment is simulated.
    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// The time of day.
    pub(crate) fn now(&self) -> Timestamp {
        let Some(Simulated { epoch, began, .. }) = self.simulated.as_deref() else {
            return Timestamp::now();
        };
        let passed = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
        let epoch = *locked(epoch);
        epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Sets the clock of a simulated environment forth or back, as a machine's may be set; no other clock.
    pub fn set_clock(&self, by: SignedDuration) {
        if let Some(Simulated { epoch, .. }) = self.simulated.as_deref() {
            let mut epoch = locked(epoch);
            *epoch = epoch.saturating_add(by).unwrap_or(*epoch);
        }
    }

    /// A random number; in a simulated environment the seed determines it.
    pub(crate) fn random(&self) -> u128 {
        match self.simulated.as_deref() {
            None => rand::random(),
            Some(Simulated { chance, .. }) => locked(chance).random(),
        }
    }

    /// Connects to a name or address, which may be in brackets as in a URL.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match self.simulated.as_deref() {
            Some(Simulated { dial, .. }) => dial(host, port).await,
            None => Ok(Box::new(TcpStream::connect((host, port)).await?)),
        }
    }
}

/// A [`Dial`] from a function that connects to addresses, for a network without names.
pub fn dial<S, F>(connect: impl Fn(SocketAddr) -> F + Clone + Send + Sync + 'static) -> Arc<Dial>
where
    S: Stream + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    Arc::new(move |host, port| {
        let address = format!("{host}:{port}").parse();
        let connect = connect.clone();
        Box::pin(async move {
            let stream = connect(address.map_err(io::Error::other)?).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    })
}

/// A runtime with all tasks on one thread, whose clock advances only when every task waits. It is
/// deterministic: every `select!` is biased, and the receivers of a watch channel wake in order. A socket
/// panics in it; a caller that needs signals enables I/O, through which signals arrive.
#[cfg(feature = "demo")]
pub fn simulated_runtime() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn what_is_simulated_is_the_same_each_time() {
        let refused = || -> Arc<Dial> {
            let error = || io::Error::from(io::ErrorKind::ConnectionRefused);
            Arc::new(move |_, _| Box::pin(async move { Err(error()) }))
        };
        let told = async || {
            let env = Env::simulated(Timestamp::UNIX_EPOCH, 7, refused());
            advance(Duration::from_millis(1500)).await;
            let told = (env.now().to_string(), env.random(), env.clone().random());
            let refused = env.connect("127.0.0.1", 1).await;
            let refused = refused.err().expect("nobody is there");
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            told
        };
        let first = told().await;
        assert_eq!(first.0, "1970-01-01T00:00:01.5Z");
        assert_ne!(first.1, first.2);
        assert_eq!(told().await, first);
        let env = Env::simulated(Timestamp::UNIX_EPOCH, 7, refused());
        for (by, now) in [
            (3600, "1970-01-01T01:00:00Z"),
            (-1800, "1970-01-01T00:30:00Z"),
        ] {
            env.set_clock(SignedDuration::from_secs(by));
            assert_eq!(env.clone().now().to_string(), now);
        }
        let system = Env::system();
        assert!(
            !system.is_simulated() && system.now() > Timestamp::UNIX_EPOCH + Duration::from_mins(1)
        );
    }
}
