//! What this process and the supervisor say to each other over their socket: a length and that much JSON, the input's
//! bytes and perhaps [`STOP`] that way; lines of JSON this way. Both ends are the same program.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

/// Tells the supervisor to stop the program.
pub(super) const STOP: u8 = b'T';

/// What the supervisor is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub folder: Option<OsString>,
    pub grace_ms: u64,
    /// How many bytes of input follow; `None` for no input at all.
    pub stdin_bytes: Option<usize>,
    pub lock: OsString,
}

impl Request {
    pub(super) fn write(&self, mut to: &UnixStream) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        to.write_all(&length.to_be_bytes())?;
        to.write_all(&json)
    }

    /// The length of the request that follows, in bytes: what is read is exactly the request, so that an order behind it
    /// is not read with it.
    pub(super) fn read_length(mut from: &UnixStream) -> io::Result<usize> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)
    }
}

/// What the supervisor tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The program runs, as the leader of the group with this number.
    Started { pid: i32 },
    /// The program could not be started.
    NotStarted { os_error: i32 },
    /// A process of an earlier attempt still holds the lock.
    StillRuns { holder: String, lock: OsString },
    /// The supervisor could not do its own part.
    Failed { doing: String, os_error: i32 },
    /// The program was reaped, and its group is empty unless there are survivors.
    Ended { code: Option<i32>, signal: Option<i32>, survivors: bool },
}

/// Which of `fds` can be read, or are at their end; waits at most `wait_ms` for one.
pub(super) fn readable(fds: &[BorrowedFd<'_>], wait_ms: u64) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let wait = Timespec {
        tv_sec: i64::try_from(wait_ms / 1_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(wait_ms % 1_000 * 1_000_000).unwrap_or(0),
    };
    match poll(&mut polled, Some(&wait)) {
        Ok(_) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}
