//! A progress bar, on a terminal only.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how far a step is.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// `what` is counted up to `length`.
    pub fn new(what: &'static str, length: u64) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("{prefix:>8} [{wide_bar}] {pos}/{len} {msg}")
            .expect("the template is valid");
        let bar =
            ProgressBar::with_draw_target(Some(length), target).with_style(style).with_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// So many more are done.
    pub fn advance(&self, count: u64) {
        self.0.inc(count);
    }

    /// So many are done.
    pub fn set(&self, position: u64) {
        self.0.set_position(position);
    }

    /// What happens meanwhile.
    pub fn tell(&self, message: String) {
        self.0.set_message(message);
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
