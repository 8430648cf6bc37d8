//! The methods of the core of a session, the calls between the files that hold them, and the calls of its parts. The core is a
//! router of parts, so each number here only shrinks.

use super::{code, sources};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The files with an `impl Core`, and the methods in them.
const FILES: usize = 3;
const METHODS: usize = 60;

/// The files that call each other in one circle, and the pairs of files that call each other.
const LARGEST_CIRCLE: usize = 3;
const MUTUAL_PAIRS: usize = 3;

/// The files that name the core, beside its own: the views of it, and the handlers of requests that read it or start something.
const NAME_THE_CORE: &[&str] = &[
    "session/core/command",
    "session/core/commands/context",
    "session/core/commands/entries",
    "session/core/commands/export",
    "session/core/commands/founding/fork",
    "session/core/commands/idle",
    "session/core/commands/search",
    "session/core/commands/status",
    "session/core/commands/subscribe",
    "session/core/commands/tree",
    "session/core/commands/turns",
    "session/core/commands/usage",
    "session/core/standing",
    "session/core/standing/load",
];

/// The fields of the core, of its base and of its upkeep that are parts with verbs of their own.
const PARTS: &[&str] = &[
    "after_turn",
    "ahead",
    "changes",
    "contexts",
    "costs",
    "counting",
    "extracts",
    "idle",
    "index",
    "learning",
    "lock",
    "log",
    "notices",
    "queue",
    "reads",
    "recoveries",
    "relays",
    "rounds",
    "switches",
    "turns",
    "waiting",
    "work",
];

/// The pairs of a part and a file that calls a method of it.
const CALLS_OF_PARTS: usize = 147;

/// The methods of the core in one file, and the methods that the file calls.
#[derive(Default)]
struct Methods {
    in_core: bool,
    named: BTreeSet<String>,
    called: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Methods {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let is_core = matches!(&*item.self_ty, syn::Type::Path(path) if path.path.is_ident("Core"));
        if is_core && item.trait_.is_none() {
            let methods = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
                _ => None,
            });
            self.named.extend(methods);
        }
        let around = std::mem::replace(&mut self.in_core, is_core);
        visit::visit_item_impl(self, item);
        self.in_core = around;
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let receiver = |name: &str| matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident(name));
        if self.in_core && receiver("self") || receiver("core") {
            self.called.insert(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// The methods of the core, by file.
fn methods() -> BTreeMap<String, Methods> {
    let core = sources().into_iter().filter(|(name, _)| name.starts_with("session/core"));
    let read = |(name, text): (String, String)| {
        let file = syn::parse_file(code(&text)).unwrap_or_else(|error| panic!("src/{name}.rs: {error}"));
        let mut methods = Methods::default();
        methods.visit_file(&file);
        (name, methods)
    };
    core.map(read).collect()
}

/// The calls of methods of the core from one file to another.
fn calls(methods: &BTreeMap<String, Methods>) -> BTreeSet<(&str, &str)> {
    let home: BTreeMap<&str, &str> =
        methods.iter().flat_map(|(file, it)| it.named.iter().map(|name| (name.as_str(), file.as_str()))).collect();
    let of = |(file, it): (&'_ String, &'_ Methods)| {
        let to: Vec<&str> = it.called.iter().filter_map(|name| home.get(name.as_str()).copied()).collect();
        (file.clone(), to)
    };
    let all: Vec<(String, Vec<&str>)> = methods.iter().map(of).collect();
    let named = |file: &str| methods.get_key_value(file).map(|(name, _)| name.as_str()).expect("a file");
    all.iter().flat_map(|(from, to)| to.iter().map(|to| (named(from), *to))).filter(|(from, to)| from != to).collect()
}

/// The files that a file reaches by calls.
fn reached<'a>(from: &'a str, calls: &BTreeSet<(&'a str, &'a str)>) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(file) = next.pop() {
        let new: Vec<&'a str> = calls.iter().filter(|(a, _)| *a == file).map(|(_, b)| *b).collect();
        next.extend(new.into_iter().filter(|file| seen.insert(*file)));
    }
    seen
}

#[test]
fn the_core_loses_methods_to_its_parts() {
    let methods = methods();
    let with_methods = methods.values().filter(|it| !it.named.is_empty());
    let found = (with_methods.clone().count(), with_methods.map(|it| it.named.len()).sum());
    assert_eq!(found, (FILES, METHODS), "left: files and methods now; a smaller number is written down here");
}

#[test]
fn the_circle_of_calls_between_files_of_the_core_shrinks() {
    let methods = methods();
    let calls = calls(&methods);
    let mutual = calls.iter().filter(|(a, b)| a < b && calls.contains(&(*b, *a))).count();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        methods.keys().map(|file| (file.as_str(), reached(file, &calls))).collect();
    let circle = |file: &str| reach[file].iter().filter(|other| reach[**other].contains(file)).count();
    let largest = methods.keys().map(|file| circle(file)).max().unwrap_or_default();
    assert_eq!((largest, mutual), (LARGEST_CIRCLE, MUTUAL_PAIRS), "left: now; a smaller number is written down here");
}

/// The folders and files below the core that know nothing of it and of its parts.
const BELOW_THE_CORE: &[&str] = &["session/core/parts/", "session/core/base", "session/core/step", "session/core/work"];

#[test]
fn nothing_below_the_core_names_it() {
    let below = |name: &str| BELOW_THE_CORE.iter().any(|below| name.starts_with(below));
    let named = sources().into_iter().filter(|(name, text)| below(name) && names(code(text), &["Core", "Upkeep"]));
    assert_eq!(named.map(|(name, _)| name).collect::<Vec<_>>(), [] as [String; 0]);
}

#[test]
fn few_files_name_the_core() {
    // `held` is compiled for tests alone.
    let own = |name: &str| ["session/core/starting", "session/core/ending", "session/core/held"].contains(&name);
    let core = sources().into_iter().filter(|(name, _)| name.starts_with("session/core/") && !own(name));
    let mut named: Vec<String> = core.filter(|(_, text)| names(code(text), &["Core"])).map(|(name, _)| name).collect();
    named.sort();
    assert_eq!(named, NAME_THE_CORE, "left: the files that name the core now; right: those that are known");
}

/// Whether a text has one of these names as a word.
fn names(text: &str, names: &[&str]) -> bool {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut words = lines.flat_map(|line| line.split(|char: char| !char.is_alphanumeric() && char != '_'));
    words.any(|word| names.contains(&word))
}

/// The parts whose methods a file calls.
#[derive(Default)]
struct Called(BTreeSet<String>);

impl<'ast> Visit<'ast> for Called {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let syn::Expr::Field(field) = &*call.receiver
            && let syn::Member::Named(name) = &field.member
            && PARTS.contains(&name.to_string().as_str())
        {
            self.0.insert(name.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// The names of the fields of a struct.
struct Fields(BTreeSet<String>);

impl<'ast> Visit<'ast> for Fields {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if ["Core", "Base", "Upkeep", "Idle"].contains(&item.ident.to_string().as_str()) {
            self.0.extend(item.fields.iter().filter_map(|field| field.ident.as_ref()).map(ToString::to_string));
        }
    }
}

#[test]
fn the_parts_are_fields() {
    let core = sources().into_iter().filter(|(name, _)| name.starts_with("session/core"));
    let mut fields = Fields(BTreeSet::new());
    for (name, text) in core {
        let file = syn::parse_file(code(&text)).unwrap_or_else(|error| panic!("src/{name}.rs: {error}"));
        fields.visit_file(&file);
    }
    let missing: Vec<_> = PARTS.iter().filter(|part| !fields.0.contains(**part)).collect();
    assert!(missing.is_empty(), "no part has these names: {missing:?}");
}

#[test]
fn few_files_call_a_part() {
    let core = sources().into_iter().filter(|(name, _)| name.starts_with("session/core"));
    let called = |(name, text): (String, String)| {
        let file = syn::parse_file(code(&text)).unwrap_or_else(|error| panic!("src/{name}.rs: {error}"));
        let mut called = Called::default();
        called.visit_file(&file);
        called.0.len()
    };
    assert_eq!(core.map(called).sum::<usize>(), CALLS_OF_PARTS, "left: now; a smaller number is written down here");
}
