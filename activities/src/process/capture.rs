//! Keeping the beginning of an output and its last lines, and counting the rest.

use std::collections::VecDeque;

/// How much of the end of an output is kept for a message, in bytes.
const TAIL_BYTES: usize = 4 * 1024;

/// How many lines of the end of an output a message shows.
const TAIL_LINES: usize = 20;

/// An output of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Its beginning, at most as much as was asked for.
    pub bytes: Vec<u8>,
    /// How much it was in all, in bytes.
    pub total_bytes: u64,
}

impl Captured {
    /// What is kept, as text; what is no UTF-8 is shown as such.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether something was counted and not kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.total_bytes > self.bytes.len() as u64
    }
}

/// An output while it grows: its memory does not.
#[derive(Debug)]
pub(super) struct Capture {
    limit_bytes: usize,
    kept: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

impl Capture {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, kept: Vec::new(), tail: VecDeque::with_capacity(TAIL_BYTES), total_bytes: 0 }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let room = self.limit_bytes - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let new = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let surplus = (self.tail.len() + new.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend(new);
    }

    pub(super) fn take(&mut self) -> Captured {
        Captured { bytes: std::mem::take(&mut self.kept), total_bytes: self.total_bytes }
    }

    /// The last lines, without the blank ones at the end.
    pub(super) fn last_lines(&mut self) -> String {
        let text = String::from_utf8_lossy(self.tail.make_contiguous()).into_owned();
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_last_lines_are_kept_and_the_rest_is_counted() {
        let mut capture = Capture::new(10);
        for number in 0..10_000 {
            capture.add(format!("line {number}\n").as_bytes());
        }
        capture.add(b"\n\n");
        assert!(capture.tail.len() <= TAIL_BYTES);
        let last = capture.last_lines();
        assert_eq!(last.lines().count(), TAIL_LINES);
        assert!(last.starts_with("line 9980\n") && last.ends_with("line 9999"), "{last}");
        let captured = capture.take();
        assert_eq!((captured.text().as_str(), captured.total_bytes), ("line 0\nlin", 98_892));
        assert!(captured.is_cut());
    }

    #[test]
    fn one_piece_that_is_longer_than_everything_is_cut_at_both_ends() {
        let mut capture = Capture::new(3);
        capture.add(&[b'x'; 3 * TAIL_BYTES]);
        assert_eq!(capture.tail.len(), TAIL_BYTES);
        assert_eq!(capture.take(), Captured { bytes: b"xxx".to_vec(), total_bytes: 3 * TAIL_BYTES as u64 });
    }
}
