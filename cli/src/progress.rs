//! Progress bars on stderr, for whatever can take over a second. Hidden when stderr is not a terminal.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is done within this time shows no bar: it would only flicker.
const PATIENCE: Duration = Duration::from_millis(300);

/// A bar that disappears when it is done.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// Counts bytes.
    pub(crate) fn bytes(doing: &'static str) -> Self {
        Self::new(
            doing,
            "{msg} [{bar:30}] {percent:>3}%  {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left",
        )
    }

    /// Counts anything.
    pub(crate) fn count(doing: &'static str) -> Self {
        Self::new(doing, "{msg} [{bar:30}] {percent:>3}%  {human_pos} of {human_len}, {eta} left")
    }

    fn new(doing: &'static str, template: &str) -> Self {
        // Draws nothing unless stderr is a terminal.
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(None, target).with_style(style).with_message(doing);
        Progress { bar, started: Instant::now() }
    }

    /// This much of the whole is done.
    pub(crate) fn set(&self, done: u64, total: u64) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        if self.bar.length() != Some(total) {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
    }

    /// What is done now has no measure.
    pub(crate) fn then(&self, doing: &'static str) {
        if let Ok(style) = ProgressStyle::with_template("{msg} {spinner} {elapsed}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(doing);
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
