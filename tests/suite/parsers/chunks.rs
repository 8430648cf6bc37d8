//! Bytes that arrive in pieces, and choices that are taken from the beginning of an input.

/// Takes choices from the beginning of an input. A printable character is a choice too, so that a corpus can be read.
pub fn choices<const N: usize>(data: &[u8]) -> Option<([usize; N], &[u8])> {
    let (choices, rest) = data.split_first_chunk::<N>()?;
    Some((choices.map(usize::from), rest))
}

/// Ways to cut bytes into pieces: whole, byte by byte, and in pieces of a chosen size.
pub fn cuts(bytes: &[u8], size: usize) -> [Vec<&[u8]>; 3] {
    [vec![bytes], bytes.chunks(1).collect(), bytes.chunks(1 + size % 64).collect()]
}
