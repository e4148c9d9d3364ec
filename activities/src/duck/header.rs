//! The storage version that a DuckDB file records, read without opening it as a database (*edition* §4).

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::DuckError;

const MAGIC_AT: usize = 8;
const MAIN_VERSION_AT: usize = 12;
const DATABASE_HEADERS_AT: [usize; 2] = [4096, 8192];
/// From a database header's start, as are the next.
const ITERATION_AT: usize = 8;
const STORAGE_AT: usize = 56;
const HEADERS_END: usize = 3 * 4096;
/// The main header's version as DuckDB 2.0 writes it: the storage field is then the version itself.
const MAIN_VERSION_2_0: u64 = 999;
const FIRST_DIRECT_VERSION: u64 = 69;

/// The storage version of the DuckDB file at `path`, by its active database header: 64 for files of DuckDB 1.0, 68 for
/// 1.5, and so on.
///
/// # Errors
/// [`DuckError::NotADatabase`] when the file has no such headers or its storage field names no version.
pub fn storage_version(path: &Path) -> Result<u64, DuckError> {
    let io = |source| DuckError::Io { operation: "read the header of", path: path.to_owned(), source };
    let mut bytes = Vec::with_capacity(HEADERS_END);
    File::open(path).map_err(io)?.take(HEADERS_END as u64).read_to_end(&mut bytes).map_err(io)?;
    version_in(&bytes).map_err(|(found, expected)| DuckError::NotADatabase { path: path.to_owned(), found, expected })
}

fn version_in(bytes: &[u8]) -> Result<u64, (String, &'static str)> {
    if bytes.len() < HEADERS_END {
        return Err((format!("{} bytes", bytes.len()), "three headers of 4096 bytes"));
    }
    if &bytes[MAGIC_AT..MAGIC_AT + 4] != b"DUCK" {
        return Err((format!("{:02x?} at byte 8", &bytes[MAGIC_AT..MAGIC_AT + 4]), "DUCK"));
    }
    let number = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight)
    };
    let [first, second] = DATABASE_HEADERS_AT;
    let active = if number(second + ITERATION_AT) > number(first + ITERATION_AT) { second } else { first };
    let field = number(active + STORAGE_AT);
    if number(MAIN_VERSION_AT) == MAIN_VERSION_2_0 || field >= FIRST_DIRECT_VERSION {
        return Ok(field);
    }
    match field {
        0..=3 | 64 => Ok(64),
        4 => Ok(65),
        5 => Ok(66),
        6 => Ok(67),
        7 => Ok(68),
        other => Err((format!("storage field {other}"), "0 to 7, 64, or 69 and more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(main: u64, headers: [(u64, u64); 2]) -> Vec<u8> {
        let mut bytes = vec![0; HEADERS_END + 10];
        bytes[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(b"DUCK");
        bytes[MAIN_VERSION_AT..MAIN_VERSION_AT + 8].copy_from_slice(&main.to_le_bytes());
        for (at, (iteration, storage)) in DATABASE_HEADERS_AT.into_iter().zip(headers) {
            bytes[at + ITERATION_AT..at + ITERATION_AT + 8].copy_from_slice(&iteration.to_le_bytes());
            bytes[at + STORAGE_AT..at + STORAGE_AT + 8].copy_from_slice(&storage.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_active_header_gives_the_version() {
        for (field, version) in
            [(0, 64), (1, 64), (3, 64), (4, 65), (5, 66), (6, 67), (7, 68), (64, 64), (69, 69), (70, 70)]
        {
            assert_eq!(version_in(&file(64, [(1, field), (0, 2)])), Ok(version), "field {field}");
            assert_eq!(version_in(&file(65, [(4, 2), (5, field)])), Ok(version), "field {field} in the second");
        }
        // Equal counts: a fresh file whose second header was never written.
        assert_eq!(version_in(&file(64, [(0, 7), (0, 1)])), Ok(68));
        // From 2.0 on the field is the version, whatever its size, and the main header's number names none.
        assert_eq!(version_in(&file(999, [(1, 69), (0, 0)])), Ok(69));
        assert_eq!(version_in(&file(999, [(1, 7), (0, 0)])), Ok(7));
    }

    #[test]
    fn what_is_no_database_is_refused() {
        assert!(version_in(&file(64, [(1, 8), (0, 0)])).is_err());
        assert!(version_in(&file(64, [(1, 63), (0, 0)])).is_err());
        assert!(version_in(&file(64, [(1, 1), (0, 0)])[..HEADERS_END - 1]).is_err());
        let mut other = file(64, [(1, 1), (0, 0)]);
        other[MAGIC_AT] = b'd';
        assert!(version_in(&other).is_err());
    }
}
