//! The lines of a file as rows. A row has the bytes of a line with its newline, which only the last line may lack, so the
//! rows one after the other are the file.

/// The lines of a piece of a file.
pub fn of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

/// Whether the last of these rows, or of a file without rows, ends its line.
#[must_use]
pub fn are_whole(rows: &[Vec<u8>]) -> bool {
    rows.last().is_none_or(|row| row.ends_with(b"\n"))
}

/// Size of rows, in bytes.
#[must_use]
pub fn size(rows: &[Vec<u8>]) -> u64 {
    rows.iter().map(|row| row.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_one_after_the_other_are_the_file() {
        for file in ["", "a", "a\n", "a\n\nb", "\n", "a\r\nb\n"] {
            let rows: Vec<Vec<u8>> = of(file.as_bytes()).map(<[u8]>::to_vec).collect();
            assert_eq!(rows.concat(), file.as_bytes());
            assert_eq!(are_whole(&rows), file.is_empty() || file.ends_with('\n'), "{file:?}");
            assert_eq!(size(&rows), file.len() as u64);
            assert!(rows.iter().all(|row| !row.is_empty()));
        }
    }
}
