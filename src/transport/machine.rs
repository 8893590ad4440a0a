//! What is taken from the machine this runs on: the time of day, chance, and connections to
//! addresses. All three may be made up, so that a run is the same each time.
//!
//! Made up they are for one thread, on which a runtime with a paused clock has all its tasks.

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::rc::Rc;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(tokio_unstable)]
use tokio::runtime::RngSeed;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

/// A connection to an address.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// How connections are made: to a name or address, and a port.
pub type Dial = dyn Fn(&str, u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;

struct Instead {
    /// The time of day when it began.
    epoch: Timestamp,
    began: Instant,
    chance: ChaCha8Rng,
    dial: Rc<Dial>,
}

thread_local! {
    static INSTEAD: RefCell<Option<Instead>> = const { RefCell::new(None) };
}

/// A runtime with all its tasks on one thread, whose clock goes on when none of them has anything to
/// do. What it leaves to chance is of `seed`, if the compiler is told `--cfg tokio_unstable`, as
/// `.cargo/config.toml` does: without, tasks that wait for the same are woken in any order.
pub fn made_up_runtime(seed: u64) -> io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    #[cfg(tokio_unstable)]
    builder.rng_seed(RngSeed::from_bytes(&seed.to_be_bytes()));
    #[cfg(not(tokio_unstable))]
    let _ = seed;
    builder.build()
}

/// Connections by what connects to addresses, for where there are no names.
pub fn dial<S, F>(connect: impl Fn(SocketAddr) -> F + Copy + Send + 'static) -> Rc<Dial>
where
    S: Stream + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    Rc::new(move |host, port| {
        let address = format!("{host}:{port}").parse();
        Box::pin(async move {
            let stream = connect(address.map_err(io::Error::other)?).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    })
}

/// As long as it lives, time, chance and connections of this thread are made up.
#[derive(Debug)]
pub struct MadeUp(PhantomData<*const ()>);

impl MadeUp {
    /// From now on it is `epoch`, and passes as the runtime's clock does; chance is that of `seed`.
    /// Within a runtime only.
    pub fn begin(epoch: Timestamp, seed: u64, dial: Rc<Dial>) -> Self {
        let instead = Instead {
            epoch,
            began: Instant::now(),
            chance: ChaCha8Rng::seed_from_u64(seed),
            dial,
        };
        INSTEAD.set(Some(instead));
        Self(PhantomData)
    }
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        INSTEAD.set(None);
    }
}

/// Whether there is no machine, and so no network but the one made up.
pub(crate) fn is_made_up() -> bool {
    INSTEAD.with_borrow(Option::is_some)
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    INSTEAD.with_borrow(|instead| match instead {
        None => Timestamp::now(),
        Some(Instead { epoch, began, .. }) => {
            let passed = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
            epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
        }
    })
}

/// What nobody can foresee, unless it is made up.
pub(crate) fn random() -> u128 {
    INSTEAD.with_borrow_mut(|instead| match instead {
        None => rand::random(),
        Some(Instead { chance, .. }) => chance.random(),
    })
}

/// Connects to a name or address, which may be in brackets as in a URL.
pub(super) async fn connect(host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let dialled = INSTEAD.with_borrow(|instead| Some((instead.as_ref()?.dial)(host, port)));
    match dialled {
        Some(connected) => connected.await,
        None => Ok(Box::new(TcpStream::connect((host, port)).await?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn what_is_made_up_is_the_same_each_time_and_ends() {
        let refused = || -> Rc<Dial> {
            let error = || io::Error::from(io::ErrorKind::ConnectionRefused);
            Rc::new(move |_, _| Box::pin(async move { Err(error()) }))
        };
        let told = async || {
            let made_up = MadeUp::begin(Timestamp::UNIX_EPOCH, 7, refused());
            advance(Duration::from_millis(1500)).await;
            let told = (now().to_string(), random(), random());
            let refused = connect("127.0.0.1", 1)
                .await
                .err()
                .expect("nobody is there");
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            drop(made_up);
            told
        };
        let first = told().await;
        assert_eq!(first.0, "1970-01-01T00:00:01.5Z");
        assert_ne!(first.1, first.2);
        assert_eq!(told().await, first);
        assert!(!is_made_up() && now() > Timestamp::UNIX_EPOCH + Duration::from_mins(1));
    }
}
