//! Texts of errors of providers: their meaning, and what is told of them.

use super::chunks::choices;
use abridged::provider::{
    Trouble, TroubleKind,
    overflow::{Meaning, meaning, output_beside},
};

/// Statuses that have a say in the meaning, and some that have none.
const STATUSES: [Option<u16>; 16] = [
    None,
    Some(200),
    Some(302),
    Some(400),
    Some(401),
    Some(402),
    Some(403),
    Some(404),
    Some(408),
    Some(413),
    Some(422),
    Some(429),
    Some(500),
    Some(502),
    Some(503),
    Some(529),
];

const BLANKS: [&str; 4] = [" ", "\n", "\r\n\t  ", "\u{a0}"];

/// The most characters of an error that are told: the quoted part, and the sentence around it.
const MOST_TOLD: usize = 300 + 100;

pub fn check(data: &[u8]) {
    let Some(([form], text)) = choices(data) else { return };
    let status = STATUSES[form % STATUSES.len()];
    let blank = BLANKS[form / STATUSES.len() % BLANKS.len()];
    let text = &*String::from_utf8_lossy(text);
    let found = meaning(status, text);
    let trouble = Trouble::of(status, text, None);
    let surrounded = format!("{blank}{text}{blank}");
    assert_eq!(meaning(status, &surrounded), found, "between {blank:?}");
    assert_eq!(Trouble::of(status, &surrounded, None).kind, trouble.kind, "between {blank:?}");
    // A space stands for any blank.
    let spread = text.replace(' ', &format!(" {blank}"));
    assert_eq!(meaning(status, &spread), found, "with {blank:?} behind each space");
    if !text.contains(['\\', '&']) {
        let digit = |digit: char| match digit {
            '0'..='9' => char::from_u32(u32::from(digit) - u32::from('0') + u32::from('０')).unwrap_or(digit),
            other => other,
        };
        let full_width: String = text.chars().map(digit).collect();
        assert_eq!(meaning(status, &full_width), found, "in full-width digits");
    }
    numbers(found);
    told(&trouble);
    match (trouble.kind, found) {
        (TroubleKind::Overflow(overflow), found) => assert_eq!(found, Meaning::Overflow(overflow)),
        (TroubleKind::Reserved(reservation), found) => assert_eq!(found, Meaning::Reserved(reservation)),
        _ => {}
    }
}

/// The numbers of a refusal are those of a model.
fn numbers(found: Meaning) {
    match found {
        Meaning::Overflow(overflow) => {
            assert!(overflow.limit.is_none_or(|limit| (512..=20_000_000).contains(&limit)), "{overflow:?}");
        }
        Meaning::Reserved(reservation) => {
            let (limit, input, output) = (reservation.limit(), reservation.input(), reservation.output());
            assert!(input < limit && input.saturating_add(output) > limit, "{reservation:?}");
            for estimate in [0, 1, input, limit, u64::MAX] {
                let next = reservation.next_output(estimate);
                assert!(
                    next.is_none_or(|next| next < output && next.saturating_add(input) <= limit),
                    "{reservation:?}"
                );
                assert!(output_beside(input, limit) >= 1_024);
            }
        }
        Meaning::Throttled | Meaning::OutOfQuota | Meaning::PayloadTooLarge | Meaning::Other => {}
    }
}

/// The text for a person is one line of a limited length.
pub fn told(trouble: &Trouble) {
    let told = trouble.to_string();
    assert!(told.chars().count() <= MOST_TOLD, "{} characters: {told}", told.chars().count());
    assert!(!told.contains(char::is_control), "{told:?}");
    assert!(!trouble.advice().is_empty());
    let hidden = trouble.said_as(|_| String::new());
    assert_eq!((hidden.kind, hidden.said.as_str()), (trouble.kind, ""));
}
