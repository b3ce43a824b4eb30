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
    /// Whether `inner` looks for styles, and takes bytes away that it takes for parts of one.
    looked_at: bool,
    closed: bool,
}

const BUFFER: usize = 1 << 16;

impl Output {
    /// Stdout, for text. Styles are taken out where they are not wanted: no terminal, `NO_COLOR`, `TERM=dumb`. So are other
    /// characters that terminals act on, which is why [`raw`](Self::raw) is for data.
    pub(crate) fn stdout() -> Self {
        let inner = Box::new(BufWriter::with_capacity(BUFFER, anstream::stdout()));
        Output { inner, looked_at: true, closed: false }
    }

    #[cfg(test)]
    pub(crate) fn to(inner: Box<dyn Write>) -> Self {
        Output { inner, looked_at: false, closed: false }
    }

    /// From here on, what is written goes out as it is.
    pub(crate) fn raw(&mut self) -> Result<()> {
        if self.looked_at {
            self.flush()?;
            self.inner = Box::new(BufWriter::with_capacity(BUFFER, io::stdout()));
            self.looked_at = false;
        }
        Ok(())
    }

    /// Whether nobody reads any more, so that there is no use in going on.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// One JSON document on one line.
    pub(crate) fn json(&mut self, report: &impl Serialize) -> Result<()> {
        self.raw()?;
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
