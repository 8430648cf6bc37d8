//! The sentences of the agent that say something: results, decisions, and plans for the next step. Narration says nothing.

use crate::summary::{
    prose::{clip, content_words, item, sentences},
    words::Words,
};
use std::{collections::HashSet, sync::LazyLock};

/// Longest outcome and decision, in characters.
pub(super) const LONGEST_OUTCOME: usize = 200;
const LONGEST_DECISION: usize = 240;

/// A request, by which the sentences of its answer are weighed.
pub(super) struct Asked {
    words: HashSet<String>,
    pub is_question: bool,
}

impl Asked {
    pub(super) fn of(request: &str) -> Self {
        let lower = request.to_lowercase();
        let asks = ["why ", "what ", "how ", "when ", "where ", "who ", "which ", "is ", "are ", "does ", "do "];
        let is_question = request.trim_end().ends_with(['?', '？']) || asks.iter().any(|ask| lower.starts_with(ask));
        Self { words: content_words(&lower), is_question }
    }

    /// Whether an answer is about the request.
    pub(super) fn is_about(&self, answer: &str) -> bool {
        const SHARED: usize = 2;
        content_words(&answer.to_lowercase()).intersection(&self.words).take(SHARED).count() == SHARED
    }
}

/// The sentence of an answer that says what came of a request. `taken`: outcomes of other requests, which are told again only
/// where the answer has no other.
pub(super) fn outcome(answer: &str, asked: &Asked, taken: &HashSet<String>) -> Option<String> {
    // The most sentences that are looked at.
    const MOST: usize = 60;
    let mut best: Option<((bool, i32), &str)> = None;
    for sentence in sentences(answer).take(MOST) {
        let worth = (!taken.contains(&clip(sentence, LONGEST_OUTCOME)), worth(sentence, asked));
        if worth.1 > 0 && best.is_none_or(|(most, _)| worth > most) {
            best = Some((worth, sentence));
            // A question is answered at the beginning.
            if asked.is_question && worth.0 && worth.1 > ONLY_CHECKS {
                break;
            }
        }
    }
    best.map(|(_, sentence)| clip(sentence, LONGEST_OUTCOME))
}

/// The outcome that the last answer of a turn tells: its sentence, else all of a short one.
pub(super) fn last_outcome(answer: &str, asked: &Asked, taken: &HashSet<String>) -> Option<String> {
    // A longer one has a sentence, or is narration.
    const SHORT: usize = 60;
    if let Some(headline) = headline(answer, asked) {
        return Some(headline);
    }
    let short = || Some(answer.trim()).filter(|answer| !answer.is_empty() && answer.chars().count() <= SHORT);
    outcome(answer, asked, taken).or_else(|| short().map(|answer| clip(answer, SHORT)))
}

/// The heading at the beginning of an answer, if it claims a result of the request.
fn headline(answer: &str, asked: &Asked) -> Option<String> {
    let first = answer.lines().map(str::trim).find(|line| !line.is_empty())?;
    let text = first.strip_prefix('#')?.trim_start_matches('#').trim();
    let lower = text.to_lowercase();
    let is_about = content_words(&lower).intersection(&asked.words).next().is_some();
    (is_about && claims_result(&lower) && !denies(&lower)).then(|| clip(text, LONGEST_OUTCOME))
}

/// The sentences that tell a result while the work goes on.
pub(super) fn results(said: &str) -> impl Iterator<Item = String> {
    static TELLS: LazyLock<regex::Regex> = LazyLock::new(|| {
        let done = "done|fixed|added|implemented|created|removed|updated|renamed|replaced|moved|merged|pushed|committed|published|released|deployed|bumped|resolved|finished|wrote|reverted|made|opened|installed";
        regex::Regex::new(&format!(
            r"^\W*(?:i |we )?(?:have )?(?:{done})\b|\b(?:is|are|was|were|been)\s(?:now\s|all\s)?(?:{done}|ready|green|complete)\b|\b(?:passes|passed)\b"
        ))
        .expect("a fixed pattern")
    });
    // A finding is true until it is dealt with, and a plan is none.
    const OTHER: [&str; 13] = [
        "i'll",
        "i will",
        "let me",
        "i can",
        "now that",
        "not in ",
        "stale",
        "wrong",
        "root cause",
        "failing",
        "missing",
        "error",
        "broken",
    ];
    let tells = |sentence: &&str| {
        let lower = sentence.to_lowercase().replace('’', "'");
        TELLS.is_match(unconditional(&lower))
            && !OTHER.iter().any(|word| lower.contains(word))
            && !denies(&lower)
            && worth(sentence, &Asked::of("")) > ONLY_CHECKS
    };
    sentences(said).filter(tells).map(|sentence| clip(sentence, LONGEST_OUTCOME))
}

/// The sentence by which an answer says that a part of its request is not done.
pub(super) fn gap(answer: &str) -> Option<String> {
    let found = sentences(answer).find(|sentence| admits(&sentence.to_lowercase()));
    found.map(|sentence| clip(sentence, LONGEST_OUTCOME))
}

/// Whether an agent says of its own work that it is not done.
fn admits(lower: &str) -> bool {
    static ADMITS: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)\b(?:i|we)\s(?:could\snot|couldn't|was\snot\sable|wasn't\sable|were\sunable|am\sunable|was\sunable|still\sneed\sto|still\shave\sto|ran\sout\sof\stime|skipped\sthe|(?:have\snot|haven't)\s(?:yet|been\sable|finished|done|implemented|tested|run|added|fixed|written|started))\b
              | \b(?:i|we)(?:\swill|'ll)\b.{0,80}\blater\b
              | \b(?:not\sdone|not\sfinished|not\simplemented|not\scomplete|left\sfor\slater|only\sa\sstub)\b | \b(?:it|this|that|they)\s(?:could\snot|couldn't)\sbe\b | \b(?:is|are)\s(?:still\s)?(?:pending|todo|open\stodos)\b
              | \bremains?\sto\sbe\s | \bstill\s(?:fails?|failing|broken|missing|red|blocked)\b
              | \bkonnte\b.{0,60}\bnicht\b | \bnicht\s(?:geschafft|fertig|möglich)\b
              | \bno\s(?:pude|he\spodido|fue\sposible)\b | n'ai\spas\s(?:pu|réussi) | \bnão\s(?:consegui|foi\spossível)\b
              | \bnon\s(?:sono\sriuscit|è\sstato\spossibile) | не\s(?:смог|удалось|получилось)
              | \bhabe\sich\s.{0,40}\bnicht\b | \bnoch\snicht\b | \bfaltan?\b | \bil\sreste\b | 还没 | まだ.{0,20}ません | まだ.{0,20}いない | ませんでした | できていません | 无法 | 没能 | 未能 | 하지\s못했",
        )
        .expect("a fixed pattern")
    });
    ADMITS.is_match(unconditional(&lower.replace('’', "'")))
}

/// Whether an answer ends with a question that the user has to answer before the work can go on.
pub(super) fn asks_back(answer: &str) -> bool {
    // The question at the end of a longer answer is an offer, unless it asks for a choice.
    const SHORT: usize = 240;
    const CHOICES: [&str; 7] =
        ["do you want", "would you like", "which ", "shall i", "should i", "want me to", "would you prefer"];
    let (asked, has_options) = without_options(answer);
    let last = asked.lines().last().unwrap_or_default().to_lowercase();
    let offers_choice = CHOICES.iter().any(|choice| last.contains(choice));
    let expects_answer = match has_options {
        // A list after "What does it read?" answers it.
        true => offers_choice || [" you ", " or "].iter().any(|word| last.contains(word)),
        false => offers_choice || asked.chars().count() <= SHORT,
    };
    asked.ends_with(['?', '？']) && expects_answer && !claims_success(answer)
}

/// The question at the end of an answer.
pub(super) fn question(answer: &str) -> &str {
    let (answer, _) = without_options(answer);
    sentences(answer).last().unwrap_or(answer)
}

/// An answer without the options after its question, and whether it has some.
fn without_options(answer: &str) -> (&str, bool) {
    let is_option = |line: &str| {
        let bare = line.trim().trim_start_matches(['*', '_']);
        item(line.trim()).is_some() || bare.get(1..).is_some_and(|rest| rest.starts_with([')', '.']))
    };
    let bare = |text: &str| text.trim_end().trim_end_matches(['*', '_']).len();
    let whole = answer[..bare(answer)].trim();
    let mut rest = whole;
    while let Some((before, line)) = rest.rsplit_once('\n')
        && (line.trim().is_empty() || is_option(line))
    {
        rest = before;
        let before = &before[..bare(before)];
        if before.ends_with(['?', '？']) {
            return (before, true);
        }
    }
    (whole, false)
}

/// Whether a sentence only says that the checks pass.
pub(super) fn only_checks(sentence: &str, asked: &Asked) -> bool {
    worth(sentence, asked) == ONLY_CHECKS
}

/// The worth of a sentence that only says that the checks pass: nothing of the request.
const ONLY_CHECKS: i32 = 1;

/// How much a sentence says of a result; nothing where it is not over 0.
fn worth(sentence: &str, asked: &Asked) -> i32 {
    static CORRECTS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&["actually", "reverted", "necessary", "unnecessary", "not needed", "turns out", "in fact"])
    });
    let lower = sentence.to_lowercase();
    let bare = sentence.trim_end_matches(['*', '_', '`']);
    let plain = lower.trim_start_matches(['*', '✅', '✓', ' ']);
    let wide = !sentence.is_ascii();
    let is_short = sentence.split_whitespace().count() < 3 && !(wide && sentence.chars().count() > 7);
    let is_row = sentence.starts_with('|') || sentence.contains(" | ") && sentence.ends_with('|');
    let is_option = sentence.len() > 2
        && sentence.as_bytes()[0].is_ascii_uppercase()
        && sentence[1..].starts_with([')', '.'])
        && sentence[2..].starts_with(' ');
    let is_before = ["problem", "before", "issue", "option"].iter().any(|start| plain.starts_with(start));
    // A gap is told apart from the outcome.
    let says_nothing =
        is_short || is_row || is_option || is_before || narrates(&lower) || exclaims(&lower) || admits(&lower);
    if says_nothing || bare.ends_with([':', '?', '：', '？']) {
        return 0;
    }
    const MOST_SHARED: usize = 3;
    let shared = content_words(&lower).intersection(&asked.words).take(MOST_SHARED).count() as i32;
    let tells_checks =
        ["tests pass", "all tests", "lint is", "tests are green"].iter().any(|word| lower.contains(word));
    // The checks may be all that was asked for.
    if tells_checks && shared < 2 {
        return ONLY_CHECKS;
    }
    let labelled = ["root cause", "solution", "resolved", "ursache"].iter().any(|label| plain.starts_with(label));
    let corrects = shared > 0 && CORRECTS.stand_in(&lower);
    2 + i32::from(claims_result(unconditional(&lower))) * 2
        + i32::from(labelled) * 3
        + i32::from(is_whole(bare))
        + shared
        + i32::from(corrects) * 2
}

/// The part of a sentence before the words after which it tells of a case, a time or a reason.
fn unconditional(lower: &str) -> &str {
    const BEGIN: [&str; 16] = [
        " if ",
        " when ",
        " whenever ",
        " in case ",
        " unless ",
        " until ",
        " after ",
        " once ",
        " while ",
        " since ",
        " because ",
        " so it ",
        " so that ",
        " wenn ",
        " falls ",
        " weil ",
    ];
    let end = BEGIN.iter().filter_map(|word| lower.find(word)).min().unwrap_or(lower.len());
    &lower[..end]
}

/// Whether a sentence is one, and no heading.
fn is_whole(sentence: &str) -> bool {
    sentence.ends_with(['.', '!', '。', '！', '…', ')'])
}

/// Whether a sentence says that something was done or found.
pub(super) fn claims_result(lower: &str) -> bool {
    static RESULTS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "done",
            "fixed",
            "added",
            "implemented",
            "created",
            "removed",
            "updated",
            "renamed",
            "replaced",
            "moved",
            "merged",
            "pushed",
            "committed",
            "published",
            "released",
            "deployed",
            "installed",
            "bumped",
            "addressed",
            "resolved",
            "solved",
            "completed",
            "finished",
            "made",
            "opened",
            "wrote",
            "reverted",
            "switched",
            "is complete",
            "are complete",
            "verified",
            "confirmed",
            "passes",
            "passed",
            "pass",
            "now works",
            "works now",
            "works again",
            "succeeded",
            "landed",
            "green",
            "root cause",
            "is ready",
            "are ready",
            // German
            "behoben",
            "erledigt",
            "fertig",
            "hinzugefügt",
            "ergänzt",
            "umgesetzt",
            "geändert",
            "entfernt",
            "laufen",
            "läuft",
            "bestanden",
            // French, Spanish, Portuguese, Italian
            "terminé",
            "corrigé",
            "ajouté",
            "hecho",
            "corregido",
            "añadido",
            "listo",
            "feito",
            "corrigido",
            "fatto",
            "готово",
            "исправлен",
            // Chinese, Japanese, Korean
            "完成",
            "已修复",
            "已添加",
            "已更新",
            "しました",
            "完了",
            "완료",
            "했습니다",
            "되었습니다",
            "됐습니다",
        ])
    });
    RESULTS.stand_in(lower)
}

/// Whether a sentence tells what the agent does or is about to do.
pub(super) fn narrates(lower: &str) -> bool {
    const STARTS: [&str; 56] = [
        "let me",
        "let's",
        "now let",
        "now i",
        "now, ",
        "now the ",
        "now update",
        "now add",
        "next,",
        "next i",
        "next step",
        "first,",
        "then i",
        "i'll",
        "i will",
        "i'm going",
        "i am going",
        "i'm checking",
        "i'm using",
        "i'm now",
        "i'm ",
        "i need to",
        "i should",
        "i want to",
        "i can see",
        "i see",
        "i also need",
        "i also want",
        "looking at",
        "checking",
        "here's",
        "here is",
        "here are",
        "based on",
        "that's a",
        "to understand",
        "before i",
        "we need to",
        "we should",
        "time to",
        "ich sehe",
        "ich werde",
        "ich schaue",
        "ich prüfe",
        "jetzt",
        "zuerst",
        "als nächstes",
        "lass mich",
        "bevor ich",
        "je vais",
        "voy a",
        "vou ",
        "让我",
        "现在我",
        "まず",
        "먼저",
    ];
    let plain = lower.replace('’', "'");
    let plain = ["ok, ", "okay, ", "good, ", "great, ", "alright, ", "good. ", "and "]
        .iter()
        .fold(&*plain, |rest, lead| rest.strip_prefix(lead).unwrap_or(rest));
    // "Now executing the first batch".
    let now = plain.strip_prefix("now ").and_then(|rest| rest.split(' ').next()).is_some_and(|it| it.ends_with("ing"));
    now || STARTS.iter().any(|start| plain.starts_with(start))
        || plain.ends_with("겠습니다")
        || plain.ends_with("겠습니다.")
}

/// Whether a sentence says no more than how the agent takes it.
pub(super) fn exclaims(lower: &str) -> bool {
    const STARTS: [&str; 18] = [
        "acknowledged",
        "noted",
        "got it",
        "sure",
        "ok",
        "okay",
        "understood",
        "perfect",
        "great",
        "good",
        "nice",
        "you're",
        "excellent",
        "this is great",
        "interesting",
        "wow",
        "yes",
        "clean and",
    ];
    let words = lower.split_whitespace().count();
    let starts = STARTS
        .iter()
        .any(|start| lower.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)));
    starts && words <= 7 || lower.ends_with('!') && words <= 6 && !claims_result(lower)
}

/// Whether a sentence says that something is not done or does not work. Code says nothing, and neither does a condition.
pub(super) fn denies(lower: &str) -> bool {
    static NOT: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "could not",
            "couldn't",
            "cannot",
            "can't",
            "not done",
            "not yet",
            "not fixed",
            "did not",
            "didn't",
            "have not",
            "haven't",
            "unable",
            "fail",
            "failed",
            "fails",
            "failing",
            "still",
            "blocked",
            "missing",
            "incomplete",
            "in the background",
            "remain",
            "remains",
            "not started",
            "partially",
            "skipping",
            "weiterhin",
            "awaiting",
            "대기",
            "等待",
            "仍然",
            "まだ",
            "nicht",
            "noch",
            "échouent",
            "encore",
            "todavía",
            "还有",
            "失败",
            "아직",
            "실패",
        ])
    });
    static COUNT: LazyLock<regex::Regex> =
        LazyLock::new(|| regex::Regex::new(r"\b[1-9]\d* (?:errors?|failures?)\b").expect("a fixed pattern"));
    // "Fixed the failing test" and "tritt nicht mehr auf" deny nothing.
    static ENDED: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"\b(?:the|a|an|any|all|two|three|\d+|fixed|added) (?:failing|failed|missing|incomplete|blocked)\b|\bnicht mehr\b|\bno longer fails?\b|\bstill (?:work|pass|green|compile|hold)\w*",
        )
        .expect("a fixed pattern")
    });
    let without_code: String = lower.split('`').step_by(2).collect();
    let said = ENDED.replace_all(unconditional(&without_code), "");
    NOT.stand_in(&said) || COUNT.is_match(&said) || admits(lower)
}

/// Whether the last answer of a turn claims that its request is done, and denies nothing.
pub(super) fn claims_success(answer: &str) -> bool {
    // One word is no sentence.
    let begin = answer.trim_start_matches(|char: char| !char.is_alphanumeric()).to_lowercase();
    let mut claims = ["done", "fixed", "erledigt", "fertig", "完成"].iter().any(|word| begin.starts_with(word));
    for sentence in sentences(answer) {
        let lower = sentence.to_lowercase();
        if denies(&lower) {
            return false;
        }
        claims |= claims_result(&lower) && !narrates(&lower);
    }
    claims
}

/// The decisions in an answer.
pub(super) fn decisions(answer: &str) -> impl Iterator<Item = String> {
    sentences(answer).filter(|sentence| is_decision(sentence)).map(|sentence| clip(sentence, LONGEST_DECISION))
}

/// Whether a sentence of the agent settles something.
fn is_decision(sentence: &str) -> bool {
    static PHRASES: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "decided",
            "decision",
            "instead of",
            "rather than",
            "we'll use",
            "we will use",
            "chose",
            "choose",
            "going with",
            "root cause",
            "the cause",
            "the fix is",
            "turns out",
            "the problem is",
            "the issue is",
            "the reason",
            "trade-off",
            "tradeoff",
            "must be",
            "has to be",
            // German, French, Spanish
            "entschieden",
            "entscheidung",
            "statt",
            "anstatt",
            "verzichte",
            "die ursache",
            "der grund",
            "parce que",
            "plutôt que",
            "en lugar de",
            // Chinese, Japanese, Korean
            "决定",
            "原因",
            "なぜなら",
            "원인",
            "대신",
        ])
    });
    // A reason is one of a decision where somebody decides.
    static REASONS: LazyLock<Words> =
        LazyLock::new(|| Words::new(&["because", "so that", "weil", "deshalb", "porque", "因为", "때문"]));
    static DECIDES: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "i", "we", "use", "uses", "keep", "chose", "changed", "must", "should", "so", "cause", "ich", "wir", "bug",
            "fix",
        ])
    });
    let lower = sentence.to_lowercase();
    // A plan is no decision yet, and a heading, a question or a thought is none.
    let settles = sentence.split_whitespace().count() >= 5 || !sentence.is_ascii();
    // It holds no longer than its turn where it tells of the rest of the work.
    let is_plan = ["remain", "i'll", "i’ll", "could not", "couldn't"].iter().any(|word| lower.contains(word));
    let is_plain =
        !(sentence.ends_with([':', '?']) || sentence.starts_with('|') || lower.contains("would be") || is_plan);
    let decides =
        PHRASES.are_in(&lower) || REASONS.are_in(&lower) && (DECIDES.stand_in(&lower) || !sentence.is_ascii());
    // A sentence that a block of code cut in two.
    let is_rest = lower.starts_with("rather than") || lower.starts_with("instead of");
    settles && !is_rest && is_plain && !narrates(&lower) && decides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answer: &str) -> Option<String> {
        outcome(answer, &Asked::of("Port it."), &HashSet::new())
    }

    #[test]
    fn an_outcome_tells_a_result_and_no_narration() {
        for (answer, told) in [
            (
                "Now I have a complete picture.\n\nFixed the rounding in `src/cart.rs`.",
                Some("Fixed the rounding in `src/cart.rs`."),
            ),
            ("THIS IS GREAT!", None),
            ("Let me read the file.", None),
            ("Good point. The port is 4711.", Some("The port is 4711.")),
            ("| Metric | Value |\n|---|---|\nThe lines are counted twice.", Some("The lines are counted twice.")),
            ("Jetzt lese ich die Datei.", None),
            ("I rounded in the wrong place.", Some("I rounded in the wrong place.")),
            ("먼저 파일을 확인하겠습니다.", None),
            ("PR을 머지했습니다.", Some("PR을 머지했습니다.")),
        ] {
            assert_eq!(of(answer).as_deref(), told, "{answer}");
        }
        let taken = HashSet::from(["All tests pass and lint is clean.".to_owned()]);
        assert_eq!(last_outcome("Fixed.", &Asked::of("Port it."), &taken).as_deref(), Some("Fixed."));
        assert_eq!(
            of("**Problem:** it counts twice.\n**Root cause:** the lock is stale.").as_deref(),
            Some("**Root cause:** the lock is stale.")
        );
        assert_eq!(
            of("A) Only on stop. B) On each checkpoint.\nThe hook is added.").as_deref(),
            Some("The hook is added.")
        );
        let answer = "All tests pass and lint is clean. Removed the checkpoint tests.";
        assert_eq!(outcome(answer, &Asked::of("Port it."), &taken).as_deref(), Some("Removed the checkpoint tests."));
    }

    #[test]
    fn a_decision_is_told_from_narration() {
        let count = |answer: &str| decisions(answer).count();
        assert_eq!(count("I went with rounding half up because the law asks for it."), 1);
        assert_eq!(count("Now, I will use curl instead of wget to read the page."), 0);
        assert_eq!(count("Ich habe mich für ROUND_HALF_UP entschieden, weil das Gesetz es verlangt."), 1);
        assert_eq!(count("Is that so because of the lock?"), 0);
        assert_eq!(count("我们用制表符因为规定"), 1);
        for none in [
            "chose tabs",
            "We would be going with tabs instead of spaces.",
            "The root cause could not be found here.",
            "It is red because the sky is blue.",
            "| we chose | tabs instead of spaces |",
            "rather than spaces I chose tabs for it",
            "instead of spaces we use the tabs",
        ] {
            assert_eq!(count(none), 0, "{none}");
        }
    }

    #[test]
    fn success_is_claimed_without_denials() {
        assert!(claims_success("PR #236 is merged. The branch is deleted."));
        assert!(!claims_success("The fix is pushed. One check is failing."));
        assert!(!claims_success("Here is the plan."));
        assert!(!claims_success("The migration could not be completed."));
        assert!(claims_success("Done. I added logging that tells if any step fails."));
        for denied in ["ruff reports 3 errors that i did not fix.", "3 tests fail.", "die tests laufen nicht."] {
            assert!(denies(denied), "{denied}");
        }
        for done in ["the reader reports 0 errors.", "`still` is renamed.", "it is logged when a step fails."] {
            assert!(!denies(done), "{done}");
        }
        let long = "It is a long story. ".repeat(20);
        assert!(
            asks_back(&format!("{long}Do you want tabs or spaces?")) && !asks_back(&format!("{long}Is that fine?"))
        );
        assert!(asks_back("Jaeger or Zipkin?") && !asks_back(&format!("{} Shall I go on?", "It is done. ".repeat(30))));
    }

    #[test]
    fn a_gap_is_admitted_in_many_words() {
        for said in [
            "I was not able to run it.",
            "I wasn't able to run it.",
            "We were unable to run it.",
            "I am unable to run it.",
            "I was unable to run it.",
            "I still need to run it.",
            "I still have to run it.",
            "I ran out of time.",
            "I skipped the docs.",
            "We haven't tested it.",
            "It is not finished.",
            "That is not implemented.",
            "The port is not complete.",
            "It is only a stub.",
            "This could not be merged.",
            "Two are still pending.",
            "These are open todos.",
            "The docs remain to be written.",
            "The login still fails.",
            "Das Menü konnte ich nicht bauen.",
            "Die Tests sind nicht fertig.",
            "Das habe ich leider nicht gemacht.",
            "Das ist noch nicht da.",
            "Não consegui corrigir o menu.",
            "Non sono riuscito a farlo.",
            "Не удалось исправить меню.",
            "Falta el menú.",
            "Il reste un test.",
            "まだ動きません。",
            "まだ直していない。",
            "できていません。",
        ] {
            assert_eq!(gap(&format!("I added the menu. {said}")).as_deref(), Some(said));
        }
    }
}
