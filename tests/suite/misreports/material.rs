//! The conversation of every row: 40 turns with requests, calls, results and answers. A seed is the number of its place.

use std::fmt::Write as _;

pub const TURNS: usize = 40;

/// The system prompt of a host that announces it.
pub fn instructions() -> String {
    format!("You are a careful engineer. {}", text(500, 7))
}

/// The request of a turn.
pub fn request(turn: usize) -> String {
    format!("Turn {turn}: {}", text(50 + turn * 37 % 140, 1_000 + turn))
}

/// The number of calls in a turn.
pub fn calls(turn: usize) -> usize {
    match turn % 7 {
        1 | 4 => 1,
        5 => 3,
        _ => 0,
    }
}

/// The answer of a step.
pub fn answer(turn: usize, step: usize) -> String {
    format!("Answer {turn}.{step}: {}", text(40 + (turn * 53 + step * 29) % 160, 2_000 + turn * 9 + step))
}

/// The result of a call.
pub fn result(turn: usize, step: usize) -> String {
    format!("Result {turn}.{step}: {}", text(100 + (turn * 71 + step * 43) % 300, 3_000 + turn * 9 + step))
}

/// The thinking before an answer.
pub fn thinking(turn: usize, step: usize) -> String {
    text(60 + (turn * 31 + step * 17) % 90, 4_000 + turn * 9 + step)
}

/// A request in Chinese.
pub fn request_in_chinese(turn: usize) -> String {
    const SENTENCES: [&str; 6] = [
        "请检查解析器是否保留每一行的原始字节，",
        "如果文件在写入时被截断，就从最后一个完整的条目继续，",
        "不要修改其他程序可能读取的字段。",
        "测试应当等待事件，而不是等待时间，",
        "把结果写进变更日志，并说明原因。",
        "然后运行所有相关的测试，报告失败的名称。",
    ];
    let mut text = format!("Turn {turn}: ");
    for at in 0..6 + turn % 5 {
        let _ = write!(text, "{}{}", SENTENCES[(turn + at * at) % SENTENCES.len()], turn * 31 + at);
    }
    text
}

/// Prose with some code in it.
fn text(words: usize, seed: usize) -> String {
    const WORDS: [&str; 32] = [
        "the",
        "parser",
        "reads",
        "a",
        "line",
        "and",
        "keeps",
        "its",
        "bytes",
        "because",
        "nobody",
        "else",
        "may",
        "change",
        "them",
        "later",
        "so",
        "every",
        "session",
        "returns",
        "in",
        "order",
        "after",
        "an",
        "interruption",
        "fn",
        "parse(line:",
        "&str)",
        "->",
        "Option<Entry>",
        "{",
        "}",
    ];
    let mut state = seed as u64 * 2_654_435_761 + 1;
    let mut text = String::new();
    for at in 0..words {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        text.push(if at % 14 == 13 { '\n' } else { ' ' });
    }
    text
}
