//! Shows the warnings of the simulator, which has no terminal of its own.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};
use winconform_core::text::printable;

use crate::cli::screen::Screen;

/// Shows the warnings from now on.
pub(crate) fn show(screen: Screen) {
    let lines = fmt::layer()
        .with_ansi(false)
        .with_level(false)
        .with_target(false)
        .without_time()
        .with_writer(move || Lines(screen));
    let ours = Targets::new().with_target("hybrid_sim", LevelFilter::WARN);
    // A subscriber that exists already shows them
    let _ = registry().with(ours).with(lines).try_init();
}

/// A writer for which each write is a whole event.
struct Lines(Screen);

impl io::Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = printable(String::from_utf8_lossy(event).trim());
        self.0.complain(&format!("warning: {text}\n"));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
