use super::*;

/// Gives its bytes a few at a time, as a pipe may.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.1.min(self.0.len()).min(out.len());
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn read_all(bytes: &[u8], expected: usize, drip: usize) -> Result<Vec<(u64, bool, Vec<String>)>, CodrError> {
    let mut reader = RecordReader::new(Drip(bytes, drip), "t.csv".into(), false)?;
    reader.expect_cells(expected);
    let mut out = Vec::new();
    while let Some(record) = reader.next()? {
        out.push((
            record.line,
            record.repaired,
            (0..record.len()).map(|at| record.cell(at).to_owned()).collect::<Vec<_>>(),
        ));
    }
    Ok(out)
}

#[test]
fn records_keep_their_lines_whatever_the_pieces_that_arrive() {
    let text =
        "\u{feff}\"a\",\"b\"\r\n\"c\n\",\"d \"\"e\"\"\"\n\n\"f \"g\" h\",\"i\"\n\"j \"k\"\n\",\"l\"\r\n\n\n\"m\",\"n\"";
    let expected: Vec<(u64, bool, Vec<String>)> = [
        (1, false, ["a", "b"]),
        (2, false, ["c\n", "d \"e\""]),
        (5, true, ["f \"g\" h", "i"]),
        (6, true, ["j \"k\"\n", "l"]),
        (10, false, ["m", "n"]),
    ]
    .map(|(line, repaired, cells)| (line, repaired, cells.map(str::to_owned).to_vec()))
    .to_vec();
    for drip in [1, 2, 3, 7, 1000] {
        assert_eq!(read_all(text.as_bytes(), 2, drip).unwrap(), expected, "{drip} bytes at a time");
    }
}

#[test]
fn a_record_with_other_cells_is_named_by_its_line() {
    let fault = read_all(b"\"a\",\"b\"\n\"a\",\"b\",\"c\"\n\"a\",\"b\"\n", 2, 100).unwrap_err();
    assert!(matches!(fault, CodrError::CellCount { line: 2, found: 3, expected: 2, .. }), "{fault}");
    let fault = read_all(b"\"a\",\"b\"\n\"a\"\n\"a\",\"b\"\n", 2, 100).unwrap_err();
    assert!(matches!(fault, CodrError::CellCount { line: 2, found: 1, expected: 2, .. }), "{fault}");
}

#[test]
fn bytes_that_are_not_utf8_are_named_by_their_line() {
    let fault = read_all(b"\"a\",\"b\"\n\"a\n\xff\",\"b\"\n", 2, 100).unwrap_err();
    assert!(matches!(fault, CodrError::NotUtf8 { line: 3, .. }), "{fault}");
}

#[test]
fn a_record_without_an_end_is_bounded() {
    let mut text = b"\"a\",\"b\"\n\"".to_vec();
    text.resize(RECORD_LIMIT + 2 * CHUNK, b'x');
    let fault = read_all(&text, 2, 1 << 16).unwrap_err();
    assert!(matches!(fault, CodrError::RecordTooLong { line: 2, .. }), "{fault}");
}
