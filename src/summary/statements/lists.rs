//! Rules that stand as a list below the line that announces them.

use super::{Kind, LONGEST, MOST, Statement, asks_for_work, of_line, statement, without_bullet};
use crate::summary::{
    prose::{item, sentences_of_line},
    words::Words,
};
use std::sync::LazyLock;

/// The statements of a line with the list below it.
pub(super) struct List<'a> {
    pub statements: Vec<Statement>,
    /// The items that they have. The others are statements by themselves.
    pub items: Vec<&'a str>,
}

/// The list below a line, if the line is a rule or says that rules follow. `is_own`: whether an item is a rule by itself.
pub(super) fn headed<'a>(line: &str, after: &'a str, is_own: &mut dyn FnMut(&str) -> bool) -> Option<List<'a>> {
    // The list is that of the sentence that ends with the colon. Below one that asks for work stand its parts.
    let last = sentences_of_line(line).filter(|sentence| !sentence.trim().is_empty()).last()?;
    let before = &line[..line.len() - last.len()];
    let last = last.trim();
    let rule = statement(last).filter(|_| !asks_for_work(last));
    if rule.as_ref().is_none_or(|it| it.kind > Kind::Wish) && !announces_rules(last) {
        return None;
    }
    let mut statements = Vec::new();
    of_line(before, &mut statements);
    let items: Vec<&str> = list(after).into_iter().filter(|item| !is_own(item)).collect();
    let joined = items.iter().map(|item| without_bullet(item)).collect::<Vec<_>>().join("; ");
    match rule {
        // The items say what the rule is about.
        Some(rule) if joined.len() + last.len() <= MOST_JOINED => {
            let text = format!("{} {joined}", rule.text).trim().to_owned();
            statements.push(Statement { text, ..rule });
            Some(List { statements, items })
        }
        rule => {
            let items: Vec<&str> = items.into_iter().filter(|item| item.chars().nth(MOST).is_none()).collect();
            let text = |item: &&str| without_bullet(item).split_whitespace().collect::<Vec<_>>().join(" ");
            let rules = items.iter().map(|item| Statement { kind: Kind::Rule, text: text(item) });
            statements.extend(rule.into_iter().chain(rules));
            Some(List { statements, items })
        }
    }
}

/// The headings that a line stands below.
#[derive(Debug, Default)]
pub(super) struct Headings<'a> {
    /// That of the section.
    section: &'a str,
    /// The line that ends with a colon before a list.
    list: &'a str,
}

impl<'a> Headings<'a> {
    /// Takes the next line in.
    pub(super) fn pass(&mut self, line: &'a str) {
        let bare = line.trim_matches(['#', '*', ':', '：', ' ']);
        let is_line = bare.split_whitespace().count() <= SHORT && !announces_rules(bare) && !asks_for_work(bare);
        if line.starts_with('#') {
            (self.section, self.list) = (if is_line { bare } else { "" }, "");
        } else if item(line).is_none() && !line.is_empty() {
            let announces = line.trim_end_matches('*').ends_with([':', '：']);
            self.list = if is_line && announces { bare } else { "" };
        }
    }

    /// Puts the heading before the rule of a short item, which says little without it.
    pub(super) fn complete(&self, line: &str, found: &mut [Statement]) {
        let heading = if self.list.is_empty() { self.section } else { self.list };
        let Some(text) = item(line).filter(|text| !heading.is_empty() && text.split_whitespace().count() <= SHORT)
        else {
            return;
        };
        if let [statement] = found
            && statement.kind <= Kind::Wish
            && item(&statement.text).unwrap_or(&statement.text) == text.trim()
        {
            statement.text = format!("{heading}: {}", text.trim());
        }
    }
}

/// Words of a short item, and of a heading.
const SHORT: usize = 6;

/// The longest rule that is joined with its list, in bytes.
const MOST_JOINED: usize = 360;

/// Items of a list of rules that are read.
const MOST_ITEMS: usize = 24;

/// Whether a line says that rules follow.
fn announces_rules(line: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "rules",
            "follow these",
            "mandatory",
            "conventions",
            "guidelines",
            "constraints",
            "please follow",
            "important",
            "requirements",
            "wichtig",
            "regeln",
            "règles",
            "reglas",
            "规则",
            "规定",
            "ルール",
            "규칙",
        ])
    });
    line.len() <= LONGEST && WORDS.stand_in(&line.to_lowercase())
}

/// The items of the list that a text begins with. The lines of a block of code are items, too, and so is a line of code.
fn list(text: &str) -> Vec<&str> {
    let mut rest = text.lines().map(str::trim).skip_while(|line| line.is_empty()).peekable();
    if rest.next_if(|line| line.starts_with("```")).is_some() {
        return rest.take_while(|line| !line.starts_with("```")).take(MOST_ITEMS).collect();
    }
    if let Some(code) = rest.next_if(|line| line.starts_with('`')) {
        return vec![code];
    }
    if rest.peek().is_some_and(|line| item(line).is_some()) {
        return rest.take_while(|line| item(line).is_some()).take(MOST_ITEMS).collect();
    }
    // A line may end with a colon and go on in the next one.
    let is_prose = |line: &&str| line.len() <= LONGEST && !line.starts_with(['#', '>']) && !line.ends_with([':', '：']);
    rest.next().filter(is_prose).into_iter().collect()
}
