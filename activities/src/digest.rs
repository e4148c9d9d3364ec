//! A file's three digests in one pass over it (*edition* §2).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use catalog_rules::ids::{Sha256Hex, hex};
use catalog_rules::manifest::Digests;
use md5::Md5;
use sha2::{Digest as _, Sha256};

/// How much is read at once, in bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// From this size on, a file is worth a second thread: MD5, the slowest of the three, gets its own.
const TWO_THREADS_FROM_BYTES: u64 = 4 << 20;
/// How many blocks may wait for the second thread.
const BLOCKS_AHEAD: usize = 4;

/// What a file is: how many bytes, and their digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// The number of bytes that were read.
    pub size_bytes: u64,
    /// Their digests.
    pub digests: Digests,
}

/// Reads the file at `path` once and gives its size and digests.
///
/// # Errors
/// Whatever the system says.
pub fn digest_file(path: &Path) -> io::Result<FileDigest> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() < TWO_THREADS_FROM_BYTES {
        return digest_here(&mut file);
    }
    digest_on_two_threads(&mut file)
}

#[derive(Default)]
struct Fast {
    size_bytes: u64,
    sha256: Sha256,
    crc32c: u32,
}

impl Fast {
    fn update(&mut self, block: &[u8]) {
        self.size_bytes += block.len() as u64;
        self.sha256.update(block);
        self.crc32c = crc32c::crc32c_append(self.crc32c, block);
    }

    fn finish(self, md5: Md5) -> FileDigest {
        FileDigest {
            size_bytes: self.size_bytes,
            digests: Digests {
                sha256: Sha256Hex::from_digest(&self.sha256.finalize().into()),
                md5: hex(&md5.finalize()),
                crc32c: format!("{:08x}", self.crc32c),
                others: std::collections::BTreeMap::new(),
            },
        }
    }
}

fn read_block(file: &mut impl Read, block: &mut Vec<u8>) -> io::Result<()> {
    block.clear();
    file.take(BLOCK_BYTES as u64).read_to_end(block)?;
    Ok(())
}

fn digest_here(file: &mut impl Read) -> io::Result<FileDigest> {
    let (mut fast, mut md5) = (Fast::default(), Md5::new());
    let mut block = Vec::new();
    loop {
        read_block(file, &mut block)?;
        if block.is_empty() {
            return Ok(fast.finish(md5));
        }
        fast.update(&block);
        md5.update(&block);
    }
}

fn digest_on_two_threads(file: &mut impl Read) -> io::Result<FileDigest> {
    thread::scope(|scope| {
        let (to_md5, blocks) = mpsc::sync_channel::<std::sync::Arc<Vec<u8>>>(BLOCKS_AHEAD);
        let md5 = scope.spawn(move || {
            let mut md5 = Md5::new();
            while let Ok(block) = blocks.recv() {
                md5.update(block.as_slice());
            }
            md5
        });
        let mut fast = Fast::default();
        loop {
            let mut block = Vec::with_capacity(BLOCK_BYTES);
            read_block(file, &mut block)?;
            if block.is_empty() {
                break;
            }
            let block = std::sync::Arc::new(block);
            // The receiver lives until the sender is dropped.
            let _ = to_md5.send(std::sync::Arc::clone(&block));
            fast.update(&block);
        }
        drop(to_md5);
        match md5.join() {
            Ok(md5) => Ok(fast.finish(md5)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> FileDigest {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        digest_file(file.path()).unwrap()
    }

    #[test]
    fn digests_of_known_texts() {
        let abc = of(b"abc");
        assert_eq!(abc.size_bytes, 3);
        assert_eq!(abc.digests.sha256.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(abc.digests.md5, "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(abc.digests.crc32c, "364b3fb7");
        let empty = of(b"");
        assert_eq!((empty.size_bytes, empty.digests.crc32c.as_str()), (0, "00000000"));
        assert_eq!(empty.digests.md5, "d41d8cd98f00b204e9800998ecf8427e");
        // RFC 3720: the CRC-32C of "123456789" is e3069283.
        assert_eq!(of(b"123456789").digests.crc32c, "e3069283");
    }

    #[test]
    fn both_ways_give_the_same_digests() {
        let bytes: Vec<u8> =
            (0..TWO_THREADS_FROM_BYTES + 12_345).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
        let expected = digest_here(&mut bytes.as_slice()).unwrap();
        assert_eq!(digest_on_two_threads(&mut bytes.as_slice()).unwrap(), expected);
        assert_eq!(of(&bytes), expected);
        assert_eq!(of(&bytes[..BLOCK_BYTES]), digest_on_two_threads(&mut &bytes[..BLOCK_BYTES]).unwrap());
        assert_eq!(expected.digests.sha256, Sha256Hex::of(&bytes));
    }
}
