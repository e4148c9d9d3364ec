//! The bytes of a message, with the line and the size of what is read at a time.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

use std::rc::Rc;

use super::error::ReadError;

/// A buffered reader that counts lines, and refuses to give more than a budget of bytes between two calls of
/// [`Input::begin`].
pub(super) struct Input<R> {
    inner: BufReader<R>,
    line: u64,
    budget_bytes: usize,
    left_bytes: Budget,
}

/// What is left of a budget. It is shared with whoever knows where a piece ends, where the input itself is out of reach.
#[derive(Debug, Clone)]
pub(super) struct Budget(Rc<Cell<usize>>);

impl Budget {
    /// From here on `bytes` may be taken.
    pub fn set(&self, bytes: usize) {
        self.0.set(bytes);
    }

    fn left(&self) -> usize {
        self.0.get()
    }
}

impl<R: Read> Input<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner: BufReader::with_capacity(64 * 1024, inner),
            line: 1,
            budget_bytes: usize::MAX,
            left_bytes: Budget(Rc::new(Cell::new(usize::MAX))),
        }
    }

    /// From now on at most `bytes` may be taken at a time.
    pub fn limit(&mut self, bytes: usize) {
        self.budget_bytes = bytes;
        self.left_bytes.set(bytes);
    }

    /// Begins a piece: the budget is whole again.
    pub fn begin(&mut self) {
        self.left_bytes.set(self.budget_bytes);
    }

    /// Whether the budget was used up.
    pub fn is_over(&self) -> bool {
        self.left_bytes.left() == 0
    }

    /// The budget, to be renewed from elsewhere.
    pub fn budget(&self) -> Budget {
        self.left_bytes.clone()
    }

    /// The line of the next byte, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Goes past a byte order mark and white space before the first character.
    pub fn skip_mark(&mut self) -> std::result::Result<(), ReadError> {
        let mut is_first = true;
        loop {
            let available = self.fill_buf().map_err(ReadError::Io)?;
            let mark = if is_first && available.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
            let white = available[mark..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let (skip, is_all) = (mark + white, mark + white == available.len());
            is_first = false;
            self.consume(skip);
            if skip == 0 || !is_all {
                return Ok(());
            }
        }
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let available = self.fill_buf()?;
        let size = available.len().min(into.len());
        into[..size].copy_from_slice(&available[..size]);
        self.consume(size);
        Ok(size)
    }
}

impl<R: Read> BufRead for Input<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.is_over() {
            return Err(Error::new(ErrorKind::FileTooLarge, "one piece of the message is too large"));
        }
        let available = self.inner.fill_buf()?;
        Ok(&available[..available.len().min(self.left_bytes.left())])
    }

    fn consume(&mut self, size: usize) {
        let lines = self.inner.buffer().iter().take(size).filter(|byte| **byte == b'\n').count();
        self.line += lines as u64;
        self.left_bytes.set(self.left_bytes.left().saturating_sub(size));
        self.inner.consume(size);
    }
}
