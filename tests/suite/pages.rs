//! The pages name files, links and headings that are there, their code is the code that the tests run, and each file of the
//! sources says what it is.

use crate::{
    json_schema,
    support::{Home, binary, run},
};
use abridged::protocol::schema;
use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A block of code on a page.
struct Block {
    /// The text after its fence: the language, and the file that it is from.
    info: String,
    code: String,
}

/// The lines of a page that are no code, and its blocks of code.
fn parts(page: &str) -> (Vec<&str>, Vec<Block>) {
    let (mut prose, mut blocks, mut open) = (Vec::new(), Vec::new(), None::<Block>);
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(info), None) => open = Some(Block { info: info.to_owned(), code: String::new() }),
            (None, Some(mut block)) => {
                block.code.push_str(line);
                block.code.push('\n');
                open = Some(block);
            }
            (None, None) => prose.push(line),
        }
    }
    (prose, blocks)
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|char| char.is_alphanumeric() || [' ', '-', '_'].contains(char));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// The pages of the project.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["", "docs", "examples", "protocol"].into_iter().map(|folder| root.join(folder));
    let files = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let paths = files.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page");
        let (prose, _) = parts(&text);
        let links = prose.iter().flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        for link in links.filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let is_there = match heading {
                "" => target.exists(),
                heading => fs::read_to_string(&target).is_ok_and(|text| {
                    let (prose, _) = parts(&text);
                    prose.iter().any(|line| line.starts_with('#') && anchor(line) == heading)
                }),
            };
            if !is_there {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn clients() -> Vec<Block> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/CLIENTS.md");
    parts(&fs::read_to_string(page).expect("the page")).1
}

/// A block whose fence names a file has lines of that file, in their order. The tests run these files.
#[test]
fn the_page_for_clients_shows_code_of_the_examples() {
    let mut shown = Vec::new();
    for Block { info, code } in clients() {
        let Some((_, file)) = info.split_once(' ') else { continue };
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("the file of a block");
        let mut lines = text.lines();
        let missing = code.lines().filter(|line| !line.is_empty()).find(|line| !lines.any(|it| it == *line));
        assert_eq!(missing, None, "a line that does not follow the one before it in {file}");
        shown.push(file.to_owned());
    }
    assert_eq!(shown, ["examples/streaming_loop.py", "examples/streaming_loop.py", "examples/own_summarizer.py"]);
}

#[test]
fn the_requests_on_the_page_for_clients_are_valid() {
    let schema = schema::schema();
    let mut requests = 0;
    for Block { code, .. } in clients().into_iter().filter(|block| block.info == "json") {
        for value in serde_json::Deserializer::from_str(&code).into_iter::<Value>() {
            let value = value.unwrap_or_else(|error| panic!("{error} in {code}"));
            let Some(method) = value["method"].as_str() else { continue };
            let params = &schema["properties"][method]["properties"]["params"];
            assert!(params.is_object(), "there is no method {method}");
            let problem = json_schema::problem(&schema, params, &value["params"]);
            assert_eq!(problem, None, "{method}: {code}");
            requests += 1;
        }
    }
    assert!(requests >= 15, "{requests}");
}

#[test]
fn the_asyncio_client_on_the_page_runs() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: python3 is not installed");
        return;
    }
    let blocks = clients();
    let client = blocks.iter().find(|block| block.code.starts_with("import asyncio, ")).expect("the client");
    let home = Home::new();
    fs::write(home.path("client.py"), &client.code).expect("a file");
    let binary = binary();
    let folder = Path::new(binary.get_program()).parent().expect("a folder");
    let path = format!("{}:{}", folder.display(), env::var("PATH").unwrap_or_default());
    let mut python = Command::new("python3");
    python.arg(home.path("client.py")).env("PATH", path);
    python.env("ABRIDGED_DATA_DIR", home.path("data")).env("ABRIDGED_CONFIG_DIR", home.path("config"));
    let (code, out, err) = run(python);
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert!(out.ends_with("exit code 0\n"), "{out}\n{err}");
}

/// Texts in backquotes that end with `.rs`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|word| word.ends_with(".rs") && !word.contains(char::is_whitespace))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_pages_name_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in ["ARCHITECTURE.md", "INVARIANTS.md", "TESTING.md", "DECISIONS.md"] {
        let text = fs::read_to_string(root.join("docs").join(page)).expect("the page");
        let is_there = |name: &&str| root.join("src").join(name).exists() || root.join(name).exists();
        let gone: Vec<&str> = named(&text).filter(|name| !is_there(name)).collect();
        assert!(gone.is_empty(), "docs/{page} names files that are not there: {gone:?}");
    }
}

#[test]
fn each_source_begins_with_a_sentence_about_itself() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let is_silent = |path: &PathBuf| !fs::read_to_string(path).expect("a file").starts_with("//! ");
    found.retain(is_silent);
    assert!(found.is_empty(), "no //! at the top of {found:?}");
}

/// A line of the demo without its numbers and bars.
fn without_numbers(line: &str) -> String {
    line.chars()
        .filter(|char| !char.is_ascii_digit() && !"█░│▕▏,".contains(*char))
        .collect::<String>()
        .trim()
        .to_owned()
}

/// `docs/demo.py` draws the picture. It is drawn again where the demo has other lines.
#[test]
fn the_picture_of_the_terminal_shows_the_demo() {
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/demo.svg");
    let picture = fs::read_to_string(picture).expect("the picture");
    let (_, text) = picture.split_once("<desc>").expect("its text");
    let (text, drawing) = text.split_once("</desc>").expect("its end");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let home = Home::new();
    let mut demo = home.command();
    demo.arg("demo");
    let (code, out, err) = run(demo);
    assert_eq!(code, Some(0), "{err}");
    let [drawn, printed] = [&text, &out].map(|text| text.lines().map(without_numbers).collect::<Vec<_>>());
    assert_eq!(drawn, printed, "draw it again: python3 docs/demo.py target/debug/abridged > docs/demo.svg");
    assert!(picture.len() < 60_000 && drawing.contains("prefers-color-scheme: dark"));
    assert!(!picture.contains("href") && !picture.contains("<script") && !picture.contains("@font-face"));
}

#[test]
fn the_page_of_the_examples_lists_each_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let page = fs::read_to_string(folder.join("README.md")).expect("the page");
    let tests = ["examples", "plugins"].map(|name| {
        fs::read_to_string(folder.with_file_name("tests/suite").join(format!("{name}.rs"))).expect("the tests")
    });
    for entry in fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        if name == "README.md" {
            continue;
        }
        assert!(page.contains(&format!("[`{name}`]({name})")), "examples/README.md does not list {name}");
        assert!(tests.iter().any(|text| text.contains(&name)), "no test runs {name}");
    }
}
