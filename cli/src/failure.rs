//! What a command comes to, and its exit code.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use fencepost::Error;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// What a command that ran has to say of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    Bad,
}

impl Verdict {
    pub(crate) fn of(fine: bool) -> Self {
        if fine { Verdict::Fine } else { Verdict::Bad }
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Verdict::Fine => ExitCode::SUCCESS,
            Verdict::Bad => ExitCode::from(1),
        }
    }
}

/// Why a command did not come to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    Library(Error),
    /// Stdout does not take what is written; a closed pipe is no failure and never gets here.
    Output(io::Error),
    /// Anything else that keeps a command from running.
    Run(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

impl From<io::Error> for Failure {
    /// Only stdout gives bare I/O errors here; those of files come with their path from the library.
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Output(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Library(error) => error.fmt(f),
            Failure::Output(error) => write!(f, "cannot write to stdout: {error}"),
            Failure::Run(problem) => f.write_str(problem),
        }
    }
}

impl Failure {
    /// 1 if it is the file's fault, 2 if it is anybody else's.
    pub(crate) fn code(&self) -> u8 {
        match self {
            // A source that cannot be imported is a bad file as well.
            Failure::Library(
                Error::Format { .. }
                | Error::Convert { .. }
                | Error::Sample(_)
                | Error::Shards { .. },
            ) => 1,
            Failure::Library(_) | Failure::Output(_) | Failure::Run(_) => 2,
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// Says it on stderr; if even that is closed, there is nobody to tell.
    pub(crate) fn report(&self) {
        use std::io::Write;
        const RED: Style = AnsiColor::Red.on_default().bold();
        let _nobody_listens = writeln!(anstream::stderr(), "{RED}error:{RED:#} {self}");
    }
}

#[cfg(test)]
mod tests {
    use fencepost::FormatError;

    use super::*;

    #[test]
    fn the_files_fault_is_1_and_all_else_2() {
        let cut = FormatError::Truncated { expected: 2, found: 1 }.at("a".as_ref());
        assert_eq!(Failure::from(cut).code(), 1);
        let absent = Error::io("open", "a", io::ErrorKind::NotFound.into());
        assert_eq!(Failure::from(absent).code(), 2);
        assert_eq!(Failure::from(Error::IndexOutOfRange { index: 1, len: 1 }).code(), 2);
        assert_eq!(Failure::Run(String::new()).code(), 2);
    }
}
