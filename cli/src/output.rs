//! Stdout: buffered, colours only for terminals, and a reader who leaves early is no failure.

#![forbid(unsafe_code)]

use std::io::{self, BufWriter, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::Result;

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// What is whole.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Where data goes.
pub(crate) struct Output {
    inner: Box<dyn Write>,
    closed: bool,
}

impl Output {
    /// Stdout. Styles are taken out where they are not wanted: no terminal, `NO_COLOR`, `TERM=dumb`.
    pub(crate) fn stdout() -> Self {
        Output::to(Box::new(BufWriter::with_capacity(1 << 16, anstream::stdout())))
    }

    pub(crate) fn to(inner: Box<dyn Write>) -> Self {
        Output { inner, closed: false }
    }

    /// Whether nobody reads any more, so that there is no use in going on.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// One JSON document on one line.
    pub(crate) fn json(&mut self, report: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut *self, report)?;
        self.write_all(b"\n")?;
        Ok(())
    }

    /// Writes out what is buffered.
    pub(crate) fn finish(&mut self) -> Result<()> {
        Ok(self.flush()?)
    }

    fn forgive<T>(&mut self, done: T, result: io::Result<T>) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(done)
            }
            other => other,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let result = self.inner.write(bytes);
        self.forgive(bytes.len(), result)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let result = self.inner.flush();
        self.forgive((), result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_closed_pipe_swallows_the_rest() {
        let mut out = Output::to(Box::new(Failing(io::ErrorKind::BrokenPipe)));
        assert!(!out.closed());
        out.json(&[1, 2, 3]).unwrap();
        assert!(out.closed());
        out.write_all(b"more").unwrap();
        out.finish().unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut out = Output::to(Box::new(Failing(io::ErrorKind::StorageFull)));
        assert!(matches!(out.json(&1), Err(Failure::Output(_))));
    }
}
