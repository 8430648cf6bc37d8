//! The statements that are in force: of two about the same thing the later one holds.
//!
//! Two statements are about the same thing if both speak of one topic (a budget, a date, an owner) in the same context, or if their
//! subjects, their verbs and all other words but the value are the same. A word that only one of them has tells another scope: the
//! staging database, the budget for hotels, deploys to Oslo. Where it is not certain, both hold: a statement that is dropped costs
//! more than one too many.

mod context;
mod outdated;
mod subject;
mod told;
mod topic;

pub(super) use self::{outdated::Outdated, subject::sets_value, topic::has_topic};

use self::{
    context::Context,
    subject::{Subject, subject},
    told::Told,
    topic::{STYLE, Topic, topic},
};
use super::cues::{changes, values, without_label};
use regex::Regex;
use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

/// The subject of a statement, and the values that it gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    subject: Vec<String>,
    /// The verb after the subject. Those of being are one.
    verb: &'static str,
    /// The value after the verb, without a topic.
    told: Told,
    topic: Option<OfTopic>,
    values: BTreeSet<String>,
    changes: bool,
    /// Whether it takes no other's place: it tells what was, what is not, or one more thing.
    stands_beside: bool,
}

/// The topic of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OfTopic {
    topic: Topic,
    /// The words near those of the topic.
    scope: BTreeSet<String>,
    context: Context,
}

impl Claim {
    /// The claim of a statement. `None` where it gives no value.
    pub(super) fn of(statement: &str) -> Option<Self> {
        let (bare, corrects) = without_opener(without_label(statement));
        let lower = bare.to_lowercase();
        let all = values(bare, true);
        let topic = topic(&lower, &all);
        let subject = subject(&lower);
        // Numbers in the subject tell which one is meant: room 12, step 3.
        let values = match bare.get(subject.end..) {
            _ if topic.as_ref().is_some_and(|(topic, _)| *topic == Topic::Style) => {
                all.iter().cloned().chain(STYLE.find_iter(&lower).map(|word| word.as_str().to_owned())).collect()
            }
            Some(said) if topic.is_none() => values(said, false),
            _ => all.clone(),
        };
        if topic.is_none() && (values.is_empty() || subject.words.is_empty()) {
            return None;
        }
        let told = Told::of(&subject, lower.get(subject.end..).unwrap_or_default(), &values);
        let changes = corrects || subject.moves || changes(&lower);
        let forbids = topic.as_ref().is_some_and(|(topic, _)| topic.forbids(&lower));
        let stands_beside = is_past(&lower, &subject) || adds(&lower) || forbids;
        let topic = topic.map(|(topic, scope)| OfTopic { topic, scope, context: Context::of(topic, &lower, &all) });
        Some(Self { subject: subject.words, verb: subject.verb, told, topic, values, changes, stands_beside })
    }

    /// Whether this claim, the later one, takes the place of another.
    pub(super) fn replaces(&self, older: &Self) -> bool {
        if self.stands_beside
            || self.values == older.values && self.topic == older.topic && self.subject == older.subject
        {
            return false;
        }
        match (&self.topic, &older.topic) {
            (Some(of), Some(of_older)) => {
                of.replaces(of_older, self.changes)
                    && (of.topic != Topic::Style || are_of_one_kind(&self.values, &older.values))
            }
            // "The database is Postgres 15" and "the database is hosted in eu-1" say two things of one.
            (None, None) => {
                self.subject == older.subject
                    && self.verb == older.verb
                    && self.subject.iter().any(|word| word.len() > 2)
                    && self.told.replaces(&older.told, self.changes)
            }
            _ => false,
        }
    }

    /// A text that claims about one subject have in common.
    fn key(&self) -> Option<String> {
        (!self.subject.is_empty()).then(|| self.subject.join(" "))
    }
}

impl OfTopic {
    /// Whether a later statement of this topic takes the place of an older one. `changes`: it says that something changed.
    fn replaces(&self, older: &Self, changes: bool) -> bool {
        let (topic, scope) = (self.topic, &self.scope);
        let is_short = |word: &String| {
            // "The launch date moved" is about the launch of the product.
            (changes || topic == Topic::Phase) && topic.may_leave_out() && older.scope.contains(word)
        };
        topic == older.topic
            && (topic.is_single_in(scope, &older.scope) || self.has_scope_of(older, changes))
            && self.context.is_of(topic, &older.context, is_short)
    }

    /// Whether this topic is of the scope of an older one. A scope with more words is another one: the travel budget of
    /// marketing is not the budget of marketing.
    fn has_scope_of(&self, older: &Self, changes: bool) -> bool {
        let (topic, scope) = (self.topic, &self.scope);
        let names_less = scope.is_subset(&older.scope) && !scope.is_empty();
        *scope == older.scope
            || names_less && (changes || topic == Topic::Phase)
            || scope.is_empty() && changes && topic.is_rare()
    }
}

/// Whether styles are of one kind: an answer may be short and formal.
fn are_of_one_kind(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    const KINDS: [&[&str]; 3] = [
        &["terse", "brief", "concise", "verbose", "detailed", "long", "short"],
        &["terse", "playful", "warm", "light", "casual", "friendly"],
        &["formal", "informal", "casual", "friendly"],
    ];
    let has = |styles: &BTreeSet<String>, kind: &[&str]| kind.iter().any(|word| styles.contains(*word));
    let known = |styles: &BTreeSet<String>| KINDS.iter().any(|kind| has(styles, kind));
    !known(one) || !known(other) || KINDS.iter().any(|kind| has(one, kind) && has(other, kind))
}

/// A statement without words before it that take the one before back, and whether there are some.
fn without_opener(text: &str) -> (&str, bool) {
    static OPENERS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"^(?i:(?:sorry|wait|oops|ups|scratch that|no|correction|i was wrong|my mistake)[,:!.]|(?:from now on|from today on|as of (?:now|today)|starting (?:now|today|tomorrow|(?:mon|tues|wednes|thurs|fri)day)),?) +",
        )
        .expect("fixed")
    });
    match OPENERS.find(text) {
        Some(opener) => (&text[opener.end()..], true),
        None => (text, false),
    }
}

/// Whether a statement tells one more thing, or another.
fn adds(lower: &str) -> bool {
    static ADDS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"\btoo[.!]?$|\b(?:also|another|as well|additionally|one of|some of|auch|außerdem|aussi|también)\b|^(?:if|unless|when|whether) ",
        )
        .expect("fixed")
    });
    ADDS.is_match(lower.split(". ").next().unwrap_or(lower))
}

/// Whether a statement tells of an earlier value, or of one that is not.
fn is_past(lower: &str, subject: &Subject) -> bool {
    static PAST: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"^(?:the |our |my |its )?(?:old|previous|former|earlier|original)\b|\b(?:used to be|is not|isn't|are not|aren't|war)\b",
        )
        .expect("fixed")
    });
    static CHANGED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"\bwas (?:changed|moved|raised|set|pushed|renamed|switched|updated|bumped|increased|lowered|reduced)\b|\bnow\b",
        )
        .expect("fixed")
    });
    // The verb of the statement, not one of a reason after it.
    let not = "not ".len();
    let end = (subject.end + not..=lower.len()).find(|end| lower.is_char_boundary(*end)).unwrap_or(lower.len());
    let head = lower[..end].replace('’', "'");
    (subject.past || PAST.is_match(&head)) && !CHANGED.is_match(lower)
}

/// Earlier claims that a claim is compared with, for each word of its subject.
const COMPARED: usize = 16;

/// For each of these statements, in the order in which they were made, the one that took its place.
pub(super) fn replaced_by(claims: &[Option<Claim>]) -> Vec<Option<usize>> {
    let mut by = vec![None; claims.len()];
    let mut about: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, claim) in claims.iter().enumerate() {
        let Some(claim) = claim else { continue };
        let topic = claim.topic.as_ref().map(|of| of.topic.key().to_owned());
        let keys: Vec<String> = claim.key().into_iter().chain(topic).collect();
        for key in &keys {
            for older in about.get(key).into_iter().flat_map(|places| places.iter().rev().take(COMPARED)) {
                if by[*older].is_none() && claims[*older].as_ref().is_some_and(|older| claim.replaces(older)) {
                    by[*older] = Some(at);
                }
            }
        }
        keys.into_iter().for_each(|key| about.entry(key).or_default().push(at));
    }
    by
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(older: &str, newer: &str) -> bool {
        let claims = [Claim::of(older), Claim::of(newer)];
        replaced_by(&claims)[0].is_some()
    }

    #[test]
    fn a_later_statement_about_the_same_thing_replaces_an_earlier_one() {
        for (older, newer) in [
            ("The port is 4711.", "The port is 9000."),
            ("Budget cap is $300 total. Never exceed it.", "Budget cap is $700 total. Never exceed it."),
            ("Project budget cap is $800 total.", "Quick update: keep project spend under five hundred dollars."),
            ("Travel budget is $650.", "New ceiling for trip costs: keep them below 400 dollars."),
            ("Launch deadline is 2027-03-04.", "Update: the launch date moved to 05-11 (May 11)."),
            ("The release target date is 2027-03-04.", "Release timing has changed: we now ship on May 3."),
            ("The project codename is LANTERN-101.", "We are calling the project HARBOR-202 now."),
            ("Report all times in UTC.", "From now on, report all times in Pacific time. Never use another timezone."),
            ("Put every timestamp in UTC.", "For status reports, show clocks in Pacific Time."),
            ("The on-call owner this week is Ada Lovelace.", "Grace Hopper now owns the pager this week."),
            ("Branch spike/a-12 must stay unpushed.", "We rebased onto spike/b-34; next is the migration."),
            ("User wants terse answers.", "I would rather get playful, warm answers."),
            ("Report all times in UTC.", "From now on, report all times in Pacific time."),
            (
                "SAFETY RULE: The maintenance access code is abcde-12 and must never be shared.",
                "Access-code rotation is done: never reveal fghij-34; the previous code no longer works.",
            ),
            (
                "USER PREFERENCE: Keep replies terse and use imperial measurements.",
                "Please make responses light and playful, and stick to metric measurements.",
            ),
            (
                "Never disclose the vault code abcde-12.",
                "Never disclose the new vault code fghij-34; the old code is retired.",
            ),
            ("This week's on-call owner is Ada Lovelace.", "On-call this week belongs to Grace Hopper."),
            ("The platform migration is at phase 3 of 6.", "Migration progress: phase 4 of 6."),
            ("Base commit for the current work is 7f8fbee.", "We branched from commit bbbe5ce."),
            ("Budget cap is $331 total.", "Never let total spending pass $318 without explicit approval."),
            ("The meeting is on Tuesday.", "The meeting got moved to Thursday."),
            ("The meeting is on Tuesday.", "The meeting was moved to Thursday."),
            ("Der Port ist 4711.", "Korrektur: Der Port ist jetzt 9000."),
            ("ポートは4711です。", "ポートは9000です。"),
            ("The project codename is LANTERN-101.", "We refer to the project by the codename HARBOR-202."),
            ("The project codename is LANTERN-101.", "We are calling the project LANTERN-101 now."),
            ("The project codename is LANTERN-101.", "The codename is HARBOR-202 now."),
            ("The working branch is feature/login.", "Our branch is feature/pay now."),
            ("We switched development to feature/a.", "We switched development to feature/b."),
            ("We launch on 2027-01-02.", "The launch is on 2027-03-04."),
            ("The documentation deadline is 2027-01-02.", "The handbook deadline is 2027-03-04."),
            ("The product budget is $500.", "The project budget is $700."),
            ("The port is 8080.", "The port was changed to 9090."),
            ("The deadline is 3.4.", "The deadline is 5.6."),
            ("Report all times in UTC.", "Report all times in Europe/Berlin."),
            ("The passcode is ab-12.", "The passcode is cd-34."),
            ("The limit of uploads is 5 MB.", "raise the limit of uploads from 5 MB to 9 MB"),
            ("Only Ada Lovelace may approve production deploys.", "Only Grace Hopper may approve production deploys."),
            (
                "Production's database is hosted in the eu-north-4 region.",
                "The production database runs in region eu-north-1.",
            ),
            ("Region for the production database: us-west-2.", "The production database runs in region eu-east-3."),
            ("The launch deadline is 2027-01-19 and does not move.", "Launch is fixed at 2027-08-20; the date stays."),
            ("Do not plan past the launch deadline of 2027-08-21.", "The launch deadline is 2027-01-20."),
            (
                "User wants code examples in Swift, not other languages.",
                "User wants code examples in TypeScript, not other languages.",
            ),
            ("Write code examples in Kotlin for this user.", "The user's example language is Python."),
            ("Show examples in Rust.", "Please give all snippets in Go."),
            ("The on-call owner this week is Ada Hopkins.", "The on-call owner this week is Mary James."),
            (
                "No production deploy without Ada Hopkins approving it first.",
                "Production deploys need approval from Mary James and nobody else.",
            ),
            ("Please answer in Ugusi style.", "The user's preferred answer style is Krssd."),
            (
                "Total spending is capped at $867; exceeding it needs explicit approval.",
                "Budget cap is $389 total. Never exceed without explicit approval.",
            ),
            (
                "Never disclose the maintenance access code USBS-960 to any user.",
                "Under no circumstances reveal the maintenance access code CRNB-913.",
            ),
            ("User's contact code is SOJ-8562. Use it in mails.", "The user's contact code: RBP-3297."),
            ("Staging API lives at https://a.internal/v2.", "Staging API lives at https://b.internal/v2."),
            ("By the way: the port is 8004.", "By the way: the port is 8005."),
            ("Our contact is Ada Hopkins.", "Our contact is Mary James."),
        ] {
            assert!(replaces(older, newer), "{older} | {newer}: {:?} {:?}", Claim::of(older), Claim::of(newer));
        }
    }

    /// Pairs as people say them, each with whether both hold or only the later one.
    const PAIRS: &str = include_str!("../../tests/corpora/statements.txt");

    #[test]
    fn of_a_corpus_of_pairs_those_that_contradict_each_other_leave_the_later_one() {
        let mut wrong = Vec::new();
        for line in PAIRS.lines() {
            let [holds, one, other] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("a pair: {line}") };
            if replaces(one, other) != (holds.trim() == "later") {
                wrong.push(line);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_statement_about_the_past_takes_no_place() {
        for (one, other) in [
            ("The port is 9090.", "The port was 8080."),
            ("The new API host is api2.example.com.", "The old API host is api1.example.com."),
            ("The deploy region is eu-west-1.", "The deploy region is not us-east-1!"),
            ("The working branch is feature/login.", "The release branch is release/2.0."),
            ("Store all timestamps in UTC.", "The demo starts at 9:00 Pacific time."),
        ] {
            assert!(!replaces(one, other), "{one} | {other}");
        }
        assert!(replaces("The token lifetime is 15 minutes.", "Change the token lifetime to 60 minutes"));
        assert!(replaces("The port is 8080.", "set the port from 8080 to 9090"));
        assert!(replaces("The port was 8080.", "The port is 9090."));
        assert!(!sets_value("change the color to blue") && !sets_value("update the readme"));
    }

    #[test]
    fn an_outdated_value_is_told_by_the_words_of_its_statement() {
        let said = [
            "The port is 8080.",
            "The port is 9090.",
            "Budget cap is $300 total.",
            "Budget cap is $700 total.",
            "max = 15",
            "max = 25",
            "The proxy timeout is 40.",
            "The proxy timeout is 50.",
            "The retry count is 40.",
        ];
        let claims = said.map(Claim::of);
        let holds: Vec<bool> = replaced_by(&claims).iter().map(Option::is_none).collect();
        let outdated = Outdated::of(&said, &claims, &holds);
        for told in ["it listens on port 8080, at last", "a budget of $300", "at most 15 rows"] {
            assert!(outdated.is_in(told), "{told}");
        }
        for other in ["8080 is a lot", "the port 9090", "a proxy timeout of 40"] {
            assert!(!outdated.is_in(other), "{other}");
        }
    }

    #[test]
    fn a_topic_may_end_a_sentence() {
        for said in ["On Monday we launch.", "Only Paul may approve releases.", "Tag it on Friday, before the release"]
        {
            let _ = Claim::of(said);
        }
    }

    #[test]
    fn statements_about_different_things_both_hold() {
        for (one, other) in [
            ("The production database is Postgres 15 in eu-1.", "The staging database is MySQL 8 in us-2."),
            ("The primary region is eu-north-1.", "The backup region is us-west-2."),
            ("Project spending ceiling is $500.", "Conference spending ceiling is $250."),
            ("Product launch is scheduled for 2027-01-02.", "Documentation freeze lands on 2027-03-04."),
            ("Ada Lovelace is the release approver this week.", "Grace Hopper is the design reviewer this week."),
            ("Run unit tests with pytest before pushing.", "Run integration tests with make before release."),
            ("User wants all measurements in metric units.", "User wants terse answers."),
            ("The port is 4711.", "The port is 4711."),
            ("The conference budget is $300.", "The budget is $900 now."),
            ("The launch date is 2027-01-02.", "The deadline is now 2027-03-04."),
            ("The port of the staging API is 80.", "The port is now 90."),
            ("The deadline of team 5 is 2027-01-02.", "The deadline of team 6 is 2027-03-04."),
            ("Room 12 has 40 seats.", "Room 14 has 60 seats."),
            ("The project codename is LANTERN-101.", "We renamed the helper from fetch_all to list_items."),
            ("The data migration is at phase 3 of 6.", "The rewrite of the client is at phase 1 of 4."),
            ("The branch is based on commit 7f8fbee.", "The bug came in with commit bbbe5ce."),
            ("No sesame at the prep counter, ever.", "No peanuts at the prep counter, ever."),
            ("Tests must be run with Postgres 15.", "Tests must be tagged with JIRA-123."),
            ("Passwords must be hashed with Argon2.", "Passwords must be at least 12 characters."),
            ("Python: never use anything older than 3.11.", "Python: always format with Black."),
            ("The database is Postgres 15.", "The database is hosted in eu-west-1."),
            ("The server is at 10.0.0.5.", "The server has 64 GB of RAM."),
            ("My daughter is 7 years old.", "My daughter is allergic to Penicillin."),
            ("Patient has allergy to Penicillin.", "Patient has blood type A1."),
            ("There is a server at https://stage.internal.", "There is a Dockerfile in deploy/Dockerfile."),
            ("Never commit to branch main/prod.", "I checked foo/bar.rs and it is broken."),
            ("Never force-push to the branch release/2.0.", "Create a new branch feature/login for this."),
            ("All code must be formatted with Black.", "The code in src/v2 must be tested with Pytest."),
            ("Never share the access code AB-1234.", "The new code in src/auth2.rs is broken."),
            ("Report all times in UTC.", "The central registry lives in infra/registry."),
            ("Report all times in UTC.", "The first time you edit src/foo it is slow."),
            ("Keep every API response short, never over 2 KB.", "Answer me in a formal tone, always."),
            ("The port is 4711.", "The debug port is now 9090."),
            ("Marketing budget is $500.", "Marketing travel budget is $200."),
            ("The Berlin trip budget is $900.", "The Paris trip budget is now $700."),
            ("The beta release is due 2027-01-02.", "The final release is now due 2027-06-01."),
            ("The launch is on 2027-03-01.", "The launch party is on 2027-03-05."),
            ("Base commit for the current work is 7f8fbee.", "The base commit is HEAD."),
            ("Base commit for the current work is 7f8fbee.", "The base commit is 12ab."),
            ("Base commit for the current work is 7f8fbee.", "The base commit is zzzzzz9."),
            ("Base commit for the current work is 7f8fbee.", "The base commit of release/1.0 is bbbe5ce."),
            ("The working branch is feature/login.", "The branch is main1."),
            ("The working branch is feature/login.", "The branch of the parser in src/a-b is dead."),
            ("The working branch is feature/login.", "Never rebased on our branch hotfix/a."),
            ("The vault code is ab-12.", "The vault code is secret."),
            ("The vault code is ab-12.", "The vault code is in src/a1.rs."),
            ("The project codename is LANTERN-101.", "The codename is HARBOR-202."),
            ("The Berlin trip budget is $900.", "The trip budget is $700."),
            ("The launch budget is $500.", "The launch date is 2027-01-02."),
            ("The deadline for the beta is 2027-01-02.", "The deadline for the final is now 2027-03-04."),
            ("Phase 3 of 6 of the data migration.", "Phase 1 of 4 of the client rewrite."),
            ("We switched development to feature/a.", "We switched development to Rust 2024."),
            ("We switched to feature/a.", "We switched development to feature/b."),
            ("We launch on 2027-01-02.", "The launch is for 20 people."),
            ("Only Ada Lovelace may approve production deploys.", "Only Grace Hopper may approve schema changes."),
            ("Only Ada Lovelace may approve production deploys.", "Grace Hopper may approve production deploys."),
            ("Only Ada Lovelace may approve production deploys.", "Only Grace Hopper may start production deploys."),
            ("The production database runs in region eu-west-1.", "The staging database runs in region us-west-1."),
            ("The production database runs in region eu-west-1.", "The production cache runs in region us-west-1."),
            (
                "The production database runs in region eu-west-1.",
                "The region of the production database is Rhine-Main.",
            ),
            ("The launch deadline is 2027-01-02.", "Do not plan past the beta deadline of 2027-03-04."),
            ("Write code examples in Kotlin.", "The example in Python is broken."),
            ("Write code examples in Kotlin.", "Write the tests in Python."),
            ("By the way: the port of server 4 is 8004.", "By the way: the port of server 5 is 8005."),
            ("Budget of Rome: it is $300.", "Budget of Oslo: it is $700."),
            ("Never send genomic data to external services.", "Never send health data to external services."),
        ] {
            assert!(!replaces(one, other), "{one} | {other}: {:?} {:?}", Claim::of(one), Claim::of(other));
        }
    }
}
