//! The imports of the sources: which file uses which other file of this crate.
//!
//! The reader parses each file and resolves every path that names a module of the crate: `use` trees with groups, globs,
//! renames and re-exports, `super::` and `self::`, and paths inside of code. Code under `#[cfg(test)]` does not count.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};
use syn::visit::{self, Visit};

/// A module by the segments of its path below `crate`; empty for the root.
pub type Module = Vec<String>;

/// The sources of a crate.
#[derive(Default)]
pub struct Sources {
    files: BTreeMap<Module, syn::File>,
}

/// Which file uses which: pairs of a module and a module that it names.
pub type Imports = BTreeSet<(Module, Module)>;

impl Sources {
    /// Parses every file under a `src` folder. `main.rs` is another crate and does not count.
    pub fn read(src: &Path) -> Self {
        let mut sources = Self::default();
        let mut folders = vec![src.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(src).expect("a path below").with_extension("");
                let is_rust = path.extension().is_some_and(|ending| ending == "rs");
                if is_rust && name != Path::new("main") {
                    sources.add(&name.display().to_string(), &fs::read_to_string(&path).expect("a file"));
                }
            }
        }
        sources
    }

    /// Adds a file by its name without `.rs`, such as `session/lock`. `lib` is the root.
    pub fn add(&mut self, name: &str, text: &str) {
        let module = match name {
            "lib" => Module::new(),
            name => name.split('/').map(str::to_owned).collect(),
        };
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("src/{name}.rs: {error}"));
        self.files.insert(module, file);
    }

    /// Whether a file, or one above it, is compiled for tests only.
    fn is_test(&self, at: &[String]) -> bool {
        (0..at.len()).any(|depth| {
            let declares = |item: &syn::Item| match item {
                syn::Item::Mod(child) => child.ident == at[depth] && is_for_tests(&child.attrs),
                _ => false,
            };
            self.files.get(&at[..depth]).is_some_and(|file| file.items.iter().any(declares))
        })
    }

    /// Every pair of files of which the first names the second. A module that declares its children does not use them by
    /// that alone.
    pub fn imports(&self) -> Imports {
        let scopes: BTreeMap<&Module, Scope> = self.files.iter().map(|(at, file)| (at, Scope::of(file))).collect();
        let mut imports = Imports::new();
        for (at, file) in self.files.iter().filter(|(at, _)| !self.is_test(at)) {
            let mut reader = Reader { paths: Vec::new() };
            reader.visit_file(file);
            for path in reader.paths {
                if let Some(found) = self.resolve(at, &path, &scopes, 0)
                    && found != *at
                    && !found.is_empty()
                {
                    imports.insert((at.clone(), found));
                }
            }
        }
        imports
    }

    /// The file that defines the thing at a path, seen from a module.
    fn resolve(&self, at: &Module, path: &[String], scopes: &BTreeMap<&Module, Scope>, depth: u8) -> Option<Module> {
        /// A chain of re-exports is no longer than that; a circle of them would have no end.
        const DEEPEST: u8 = 16;
        if depth > DEEPEST {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let mut base = at.clone();
        let mut rest = rest;
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
                while let Some((_, further)) = rest.split_first().filter(|(next, _)| *next == "super") {
                    base.pop();
                    rest = further;
                }
            }
            name => {
                // A child, or a name that a `use` of this file brings in.
                let child = [at.as_slice(), &[name.to_owned()]].concat();
                if self.files.contains_key(&child) {
                    base = child;
                } else {
                    let brought = scopes.get(at)?.names.get(name)?;
                    if brought.first().is_some_and(|it| it == name) {
                        // `use serde;` and the like: another crate.
                        return None;
                    }
                    let whole: Vec<String> = brought.iter().chain(rest).cloned().collect();
                    return self.resolve(at, &whole, scopes, depth + 1);
                }
            }
        }
        for (place, name) in rest.iter().enumerate() {
            let child = [base.as_slice(), std::slice::from_ref(name)].concat();
            if self.files.contains_key(&child) {
                base = child;
                continue;
            }
            // A name that the module re-exports is defined elsewhere.
            if let Some(exported) = scopes.get(&base).and_then(|scope| scope.exports.get(name)) {
                let whole: Vec<String> = exported.iter().chain(&rest[place + 1..]).cloned().collect();
                return self.resolve(&base, &whole, scopes, depth + 1);
            }
            break;
        }
        Some(base)
    }
}

/// The names that the `use` items of a file bring in.
#[derive(Default)]
struct Scope {
    names: BTreeMap<String, Vec<String>>,
    /// Those of them that others can reach through this module.
    exports: BTreeMap<String, Vec<String>>,
}

impl Scope {
    fn of(file: &syn::File) -> Self {
        let mut scope = Self::default();
        for item in file.items.iter().filter(|item| !is_for_tests(attributes(item))) {
            let syn::Item::Use(item) = item else { continue };
            let mut leaves = Vec::new();
            flatten(&item.tree, &mut Vec::new(), &mut leaves);
            for (name, path) in leaves {
                if !matches!(item.vis, syn::Visibility::Inherited) {
                    scope.exports.insert(name.clone(), path.clone());
                }
                scope.names.insert(name, path);
            }
        }
        scope
    }
}

/// The leaves of a `use` tree: the name that each brings in, and its whole path.
fn flatten(tree: &syn::UseTree, before: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        syn::UseTree::Name(name) => {
            let name = name.ident.to_string();
            let whole = if name == "self" { before.clone() } else { [before.as_slice(), &[name]].concat() };
            leaves.push((whole.last().cloned().unwrap_or_default(), whole));
        }
        syn::UseTree::Rename(rename) => {
            let name = rename.ident.to_string();
            let whole = if name == "self" { before.clone() } else { [before.as_slice(), &[name]].concat() };
            leaves.push((rename.rename.to_string(), whole));
        }
        syn::UseTree::Glob(_) => leaves.push((format!("{}::*", before.join("::")), before.clone())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, leaves)),
    }
}

/// Every path that a text names outside of tests, from `use` items and from code, such as `std::fs::read`. A name that a
/// `use` brings in is there as that `use`.
pub fn paths(text: &str) -> Vec<String> {
    let mut reader = Reader { paths: Vec::new() };
    reader.visit_file(&syn::parse_file(text).expect("a Rust file"));
    reader.paths.iter().map(|path| path.join("::")).collect()
}

/// Collects every path of a file, from `use` items and from code.
struct Reader {
    paths: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut leaves = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut leaves);
        self.paths.extend(leaves.into_iter().map(|(_, path)| path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A single name was brought in by a `use`, which counts already.
        if path.segments.len() > 1 {
            self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.visit_path(&invoked.path);
        self.paths.extend(paths_in(&invoked.tokens.to_string()));
    }
}

/// The paths that begin with `crate`, `super` or `self` in the tokens of a macro call.
fn paths_in(tokens: &str) -> Vec<Vec<String>> {
    let words: Vec<&str> = tokens.split_whitespace().collect();
    let mut paths = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if !["crate", "super", "self"].contains(word) {
            continue;
        }
        let mut path = vec![(*word).to_owned()];
        let mut next = at + 1;
        while words.get(next) == Some(&"::")
            && let Some(name) = words.get(next + 1).filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
        {
            path.push((*name).to_owned());
            next += 2;
        }
        if path.len() > 1 {
            paths.push(path);
        }
    }
    paths
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(it) => &it.attrs,
        syn::Item::Enum(it) => &it.attrs,
        syn::Item::Fn(it) => &it.attrs,
        syn::Item::Impl(it) => &it.attrs,
        syn::Item::Macro(it) => &it.attrs,
        syn::Item::Mod(it) => &it.attrs,
        syn::Item::Static(it) => &it.attrs,
        syn::Item::Struct(it) => &it.attrs,
        syn::Item::Trait(it) => &it.attrs,
        syn::Item::Type(it) => &it.attrs,
        syn::Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => attribute.path().is_ident("test"),
    })
}

/// Groups of files that use each other in a circle. A module and its descendants may.
pub fn circles(imports: &Imports) -> Vec<Vec<Module>> {
    let related = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
    let edges: Vec<(&Module, &Module)> = imports.iter().filter(|(a, b)| !related(a, b)).map(|(a, b)| (a, b)).collect();
    let reaches = |from: &Module| -> BTreeSet<&Module> {
        let mut seen: BTreeSet<&Module> = BTreeSet::new();
        let mut next: Vec<&Module> = edges.iter().filter(|(a, _)| *a == from).map(|(_, b)| *b).collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(edges.iter().filter(|(a, _)| *a == module).map(|(_, b)| *b));
            }
        }
        seen
    };
    let mut found: Vec<Vec<Module>> = Vec::new();
    let modules: BTreeSet<&Module> = edges.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        modules.iter().map(|module| (*module, reaches(module))).collect();
    for module in &modules {
        if found.iter().any(|circle| circle.contains(module)) || !reached[module].contains(module) {
            continue;
        }
        let circle = modules.iter().filter(|it| reached[*module].contains(**it) && reached[**it].contains(*module));
        found.push(circle.map(|it| (*it).clone()).collect());
    }
    found
}

/// The name of a file as people say it.
pub fn name(module: &Module) -> String {
    module.join("/")
}

/// Pairs of folders directly under `src` that use each other. A file beside a folder of its name belongs to it.
pub fn mutual_folders(imports: &Imports) -> BTreeSet<(String, String)> {
    let folders: BTreeSet<(&String, &String)> =
        imports.iter().map(|(a, b)| (&a[0], &b[0])).filter(|(a, b)| a != b).collect();
    let mutual = folders.iter().filter(|(a, b)| a < b && folders.contains(&(*b, *a)));
    mutual.map(|(a, b)| ((*a).clone(), (*b).clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports_of(files: &[(&str, &str)]) -> Vec<String> {
        let mut sources = Sources::default();
        files.iter().for_each(|(name, text)| sources.add(name, text));
        sources.imports().iter().map(|(a, b)| format!("{} -> {}", name(a), name(b))).collect()
    }

    /// Two files, of which `a/b` has the given text and `c/d` exists; the imports of `a/b`.
    fn from_a_b(text: &str) -> Vec<String> {
        let files = [
            ("lib", "mod a; mod c;"),
            ("a", "mod b; mod e;"),
            ("a/b", text),
            ("a/e", ""),
            ("c", "mod d;"),
            ("c/d", ""),
        ];
        imports_of(&files)
    }

    #[test]
    fn every_form_of_an_import_is_seen() {
        for (text, expected) in [
            ("use crate::c::d::Thing;", "a/b -> c/d"),
            ("use crate::{c::d::Thing, c};", "a/b -> c, a/b -> c/d"),
            ("use crate::{c::{self, d::{One, Two}}};", "a/b -> c, a/b -> c/d"),
            ("use crate::c::d as other;", "a/b -> c/d"),
            ("use crate::c::d::*;", "a/b -> c/d"),
            ("use super::e::Thing;", "a/b -> a/e"),
            ("use super::super::c::d::Thing;", "a/b -> c/d"),
            ("use crate::c; fn f() { c::d::work(); }", "a/b -> c, a/b -> c/d"),
            ("fn f() -> crate::c::d::Thing { todo() }", "a/b -> c/d"),
            ("fn f() { let x = super::e::Thing::new(); }", "a/b -> a/e"),
            ("fn f() { println!(\"{}\", crate::c::d::NAME); }", "a/b -> c/d"),
            ("#[cfg(test)] mod tests { use crate::c::d::Thing; }", ""),
            ("#[cfg(test)] use crate::c::d::Thing;", ""),
            ("use std::fs; use serde::Deserialize; fn f() { fs::read(0); }", ""),
            ("use Kind::One; enum Kind { One } fn f() { Kind::One; }", ""),
        ] {
            assert_eq!(from_a_b(text).join(", "), expected, "{text}");
        }
    }

    #[test]
    fn a_file_of_tests_does_not_count() {
        let imports = |declared: &str| {
            imports_of(&[
                ("lib", "mod a; mod c;"),
                ("a", declared),
                ("a/tests", "mod play;"),
                ("a/tests/play", "use crate::c::Thing;"),
                ("c", ""),
            ])
        };
        assert_eq!(imports("mod tests;"), ["a/tests/play -> c"]);
        assert_eq!(imports("#[cfg(test)] mod tests;"), Vec::<String>::new());
    }

    #[test]
    fn a_group_names_its_paths_whole() {
        let text =
            "use std::{thread, process::Command}; fn f() { tokio::spawn(g()) } #[cfg(test)] mod tests { use std::fs; }";
        assert_eq!(paths(text), ["std::thread", "std::process::Command", "tokio::spawn"]);
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_defines_the_name() {
        let files = [
            ("lib", "mod a; mod c;"),
            ("a", "use crate::c::Thing;"),
            ("c", "mod d; pub use d::Thing;"),
            ("c/d", "pub struct Thing;"),
        ];
        assert_eq!(imports_of(&files), ["a -> c/d", "c -> c/d"]);
        let endless = [("lib", "mod a; mod c;"), ("a", "pub use crate::c::X;"), ("c", "pub use crate::a::X;")];
        assert_eq!(imports_of(&endless), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_found_and_a_module_may_use_its_own_children() {
        let imports = |pairs: &[(&str, &str)]| -> Imports {
            let module = |name: &str| name.split('/').map(str::to_owned).collect::<Module>();
            pairs.iter().map(|(a, b)| (module(a), module(b))).collect()
        };
        let names = |found: Vec<Vec<Module>>| -> Vec<Vec<String>> {
            found.iter().map(|circle| circle.iter().map(name).collect()).collect()
        };
        assert_eq!(names(circles(&imports(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]))), [["a", "b", "c"]]);
        assert!(circles(&imports(&[("a", "a/b"), ("a/b", "a"), ("a", "c")])).is_empty());
        let mutual = mutual_folders(&imports(&[("a/x", "b"), ("b/y", "a"), ("a", "c")]));
        assert_eq!(mutual.into_iter().collect::<Vec<_>>(), [("a".to_owned(), "b".to_owned())]);
    }
}
