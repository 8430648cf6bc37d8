//! A session file as a careless program or a failing disk leaves it.

use crate::{mutator::mutate, wire::Dice};

/// Changes lines of a file: dropped, doubled, swapped, cut, glued, with flipped bits.
pub fn spoiled(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for _ in 0..1 + dice.below(3) {
        if lines.is_empty() {
            break;
        }
        // The header is hit as often as any other line, and newer lines more often than old ones.
        let newest = lines.len().saturating_sub(8);
        let at = if dice.below(2) == 0 { dice.below(lines.len()) } else { newest + dice.below(lines.len() - newest) };
        match dice.below(8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = dice.below(lines.len());
                lines.swap(at, other);
            }
            3 => {
                let length = dice.below(lines[at].len() + 1);
                lines[at].truncate(length);
            }
            4 => drop(lines[at].pop_if(|byte| *byte == b'\n')),
            5 => {
                let others: Vec<String> = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
                mutate(dice, &mut lines[at], &others);
            }
            6 => lines.truncate(at.max(1)),
            _ => {
                let place = dice.below(lines[at].len().max(1));
                if let Some(byte) = lines[at].get_mut(place) {
                    *byte ^= 1 << dice.below(8);
                }
            }
        }
    }
    let mut bytes = lines.concat();
    if dice.below(4) == 0 {
        bytes.truncate(bytes.len() - dice.below(bytes.len().min(200) + 1));
    }
    bytes
}
