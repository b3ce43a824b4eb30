//! The fixed fields at the start of a file, repeated at its end. SPEC section "Header".

#![forbid(unsafe_code)]

use super::{
    ALIGNMENT_MIN, BLOCK_SIZE, HEADER_SIZE, MAGIC, MAX_DIRECTORY_BYTES, VERSION_MAJOR,
    VERSION_MINOR,
};
use crate::error::FormatError;

// Each place is built from the one before it, so that no byte can be given twice.
const MAGIC_AT: usize = 0;
const MAJOR_AT: usize = MAGIC_AT + 8;
const MINOR_AT: usize = MAJOR_AT + 2;
const BLOCK_SIZE_AT: usize = MINOR_AT + 2;
const CRITICAL_AT: usize = BLOCK_SIZE_AT + 4;
const FILE_LENGTH_AT: usize = CRITICAL_AT + 8;
const SAMPLES_AT: usize = FILE_LENGTH_AT + 8;
const DIRECTORY_OFFSET_AT: usize = SAMPLES_AT + 8;
const DIRECTORY_LENGTH_AT: usize = DIRECTORY_OFFSET_AT + 8;
const DIRECTORY_COPY_OFFSET_AT: usize = DIRECTORY_LENGTH_AT + 8;
const CHECKSUMS_OFFSET_AT: usize = DIRECTORY_COPY_OFFSET_AT + 8;
const CHECKSUMS_LENGTH_AT: usize = CHECKSUMS_OFFSET_AT + 8;
const DIRECTORY_CRC_AT: usize = CHECKSUMS_LENGTH_AT + 8;
const CHECKSUMS_CRC_AT: usize = DIRECTORY_CRC_AT + 4;
const RESERVED_AT: usize = CHECKSUMS_CRC_AT + 4;
const HEADER_CRC_AT: usize = HEADER_SIZE - 4;

/// Critical feature bits that this version of the library understands.
const KNOWN_CRITICAL: u64 = 0;

/// The header, checked: every place it names lies in the file, in order, and aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub minor: u16,
    pub file_length: u64,
    pub samples: u64,
    pub directory_offset: u64,
    pub directory_length: u64,
    pub directory_copy_offset: u64,
    pub directory_crc: u32,
    pub checksums_offset: u64,
    pub checksums_length: u64,
    pub checksums_crc: u32,
}

fn u16_at(bytes: &[u8; HEADER_SIZE], at: usize) -> u16 {
    let mut field = [0; 2];
    field.copy_from_slice(&bytes[at..at + 2]);
    u16::from_le_bytes(field)
}

fn u32_at(bytes: &[u8; HEADER_SIZE], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8; HEADER_SIZE], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

/// Checks the signature, which needs only the first eight bytes, so that a short file of another kind is named as such.
pub(crate) fn check_magic(start: &[u8]) -> Result<(), FormatError> {
    let found = &start[..start.len().min(MAGIC.len())];
    if found == MAGIC {
        return Ok(());
    }
    let advice = if found.is_empty() {
        "the file is empty"
    } else if MAGIC.starts_with(found) {
        "the file is cut off inside its signature: copy it again"
    } else if found.starts_with(b"\x89FNCP\n") || found.starts_with(b"\x89FNCP\r\r\n") {
        "line ends were converted on the way: copy it again in binary mode"
    } else if found.starts_with(b"\x09FNCP") {
        "the eighth bit was cleared on the way: copy it again in binary mode"
    } else {
        "check the path, or write the file again"
    };
    let found = found.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    Err(FormatError::Magic {
        found: if found.is_empty() { "nothing".into() } else { found },
        advice,
    })
}

impl Header {
    /// Checks the header's own fields in the order of the specification: signature, version, CRC, file length, features.
    /// The places it names are checked by [`check_places`](Self::check_places).
    pub(crate) fn parse(bytes: &[u8; HEADER_SIZE], file_length: u64) -> Result<Self, FormatError> {
        check_magic(bytes)?;
        let (major, minor) = (u16_at(bytes, MAJOR_AT), u16_at(bytes, MINOR_AT));
        if major != VERSION_MAJOR {
            return Err(FormatError::Version { major, minor });
        }
        let expected = u32_at(bytes, HEADER_CRC_AT);
        let found = crc32fast::hash(&bytes[..HEADER_CRC_AT]);
        if expected != found {
            return Err(FormatError::Checksum { what: "the header".to_owned(), expected, found });
        }
        let declared = u64_at(bytes, FILE_LENGTH_AT);
        if file_length < declared {
            return Err(FormatError::Truncated { expected: declared, found: file_length });
        }
        if file_length > declared {
            return Err(FormatError::TrailingBytes { expected: declared, found: file_length });
        }
        let unknown = u64_at(bytes, CRITICAL_AT) & !KNOWN_CRITICAL;
        if unknown != 0 {
            return Err(FormatError::CriticalFeature { unknown });
        }
        let block = u32_at(bytes, BLOCK_SIZE_AT);
        if u64::from(block) != BLOCK_SIZE {
            return Err(FormatError::Header {
                field: "block_size",
                expected: BLOCK_SIZE.to_string(),
                found: block.to_string(),
            });
        }
        // A later minor version may use these bytes; this one may not.
        if minor == VERSION_MINOR
            && let Some(at) = bytes[RESERVED_AT..HEADER_CRC_AT].iter().position(|&byte| byte != 0)
        {
            return Err(FormatError::Header {
                field: "reserved",
                expected: "zero".to_owned(),
                found: format!("{:#04x} at byte {}", bytes[RESERVED_AT + at], RESERVED_AT + at),
            });
        }
        Ok(Header {
            minor,
            file_length,
            samples: u64_at(bytes, SAMPLES_AT),
            directory_offset: u64_at(bytes, DIRECTORY_OFFSET_AT),
            directory_length: u64_at(bytes, DIRECTORY_LENGTH_AT),
            directory_copy_offset: u64_at(bytes, DIRECTORY_COPY_OFFSET_AT),
            directory_crc: u32_at(bytes, DIRECTORY_CRC_AT),
            checksums_offset: u64_at(bytes, CHECKSUMS_OFFSET_AT),
            checksums_length: u64_at(bytes, CHECKSUMS_LENGTH_AT),
            checksums_crc: u32_at(bytes, CHECKSUMS_CRC_AT),
        })
    }

    /// Checks that the parts behind the sections lie in the file, in order and aligned.
    pub(crate) fn check_places(&self) -> Result<(), FormatError> {
        if self.samples >= i64::MAX as u64 {
            return Err(FormatError::Header {
                field: "samples",
                expected: "less than 2^63 - 1".to_owned(),
                found: self.samples.to_string(),
            });
        }
        if self.directory_length > MAX_DIRECTORY_BYTES {
            return Err(FormatError::Header {
                field: "directory_length",
                expected: format!("at most {MAX_DIRECTORY_BYTES}"),
                found: self.directory_length.to_string(),
            });
        }
        let parts: [(&'static str, u64, u64); 4] = [
            ("checksums_offset", self.checksums_offset, self.checksums_length),
            ("directory_offset", self.directory_offset, self.directory_length),
            ("directory_copy_offset", self.directory_copy_offset, self.directory_length),
            ("file_length", self.file_length.saturating_sub(HEADER_SIZE as u64), 0),
        ];
        let mut low = HEADER_SIZE as u64;
        for (field, offset, length) in parts {
            if offset < low || offset % ALIGNMENT_MIN != 0 {
                return Err(FormatError::Header {
                    field,
                    expected: format!("a multiple of {ALIGNMENT_MIN} that is at least {low}"),
                    found: offset.to_string(),
                });
            }
            low = offset.checked_add(length).filter(|&end| end <= self.file_length).ok_or_else(
                || FormatError::Header {
                    field,
                    expected: format!("an end within the file's {} bytes", self.file_length),
                    found: format!("{offset} + {length}"),
                },
            )?;
        }
        Ok(())
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(MAGIC_AT, &MAGIC);
        put(MAJOR_AT, &VERSION_MAJOR.to_le_bytes());
        put(MINOR_AT, &self.minor.to_le_bytes());
        put(BLOCK_SIZE_AT, &(BLOCK_SIZE as u32).to_le_bytes());
        put(CRITICAL_AT, &0u64.to_le_bytes());
        put(FILE_LENGTH_AT, &self.file_length.to_le_bytes());
        put(SAMPLES_AT, &self.samples.to_le_bytes());
        put(DIRECTORY_OFFSET_AT, &self.directory_offset.to_le_bytes());
        put(DIRECTORY_LENGTH_AT, &self.directory_length.to_le_bytes());
        put(DIRECTORY_COPY_OFFSET_AT, &self.directory_copy_offset.to_le_bytes());
        put(CHECKSUMS_OFFSET_AT, &self.checksums_offset.to_le_bytes());
        put(CHECKSUMS_LENGTH_AT, &self.checksums_length.to_le_bytes());
        put(DIRECTORY_CRC_AT, &self.directory_crc.to_le_bytes());
        put(CHECKSUMS_CRC_AT, &self.checksums_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..HEADER_CRC_AT]);
        bytes[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            minor: 0,
            file_length: 4096 + 64 + 128 + 128 + 4096,
            samples: 3,
            directory_offset: 4160,
            directory_length: 100,
            directory_copy_offset: 4288,
            directory_crc: 7,
            checksums_offset: 4096,
            checksums_length: 12,
            checksums_crc: 9,
        }
    }

    #[test]
    fn the_places_of_the_fields_never_change() {
        assert_eq!(RESERVED_AT, 88);
        assert_eq!(HEADER_CRC_AT, 4092);
        assert_eq!(MAGIC, [0x89, 0x46, 0x4e, 0x43, 0x50, 0x0d, 0x0a, 0x1a]);
    }

    #[test]
    fn what_was_written_is_read() {
        let header = header();
        assert_eq!(Header::parse(&header.to_bytes(), header.file_length), Ok(header));
        assert_eq!(header.check_places(), Ok(()));
    }

    #[test]
    fn a_newer_minor_version_may_use_the_reserved_bytes() {
        let mut bytes = Header { minor: 7, ..header() }.to_bytes();
        bytes[2000] = 1;
        let crc = crc32fast::hash(&bytes[..HEADER_CRC_AT]);
        bytes[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        assert!(Header::parse(&bytes, header().file_length).is_ok());
    }

    #[test]
    fn parts_that_overlap_or_leave_the_file_are_refused() {
        let good = header();
        for bad in [
            Header { checksums_offset: 64, ..good },
            Header { checksums_length: u64::MAX, ..good },
            Header { directory_offset: 4161, ..good },
            Header { directory_length: 129, ..good },
            Header { directory_copy_offset: 4160, ..good },
            Header { samples: u64::MAX, ..good },
        ] {
            assert!(bad.check_places().is_err(), "{bad:?}");
        }
    }
}
