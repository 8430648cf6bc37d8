//! Skills and instructions that an agent loads, by the calls of its tools and by the messages of its harness.

use super::files_of;
use crate::{
    conversation::entry::LoadKind,
    settings::{FileOperation, ToolSettings},
    summary::shell::{self, Use, is_same_tool},
};
use serde_json::Value;

/// Tools of common agents that load a skill.
const TOOLS: [&str; 9] = [
    "skill",
    "load_skill",
    "use_skill",
    "read_skill",
    "get_skill",
    "run_skill",
    "invoke_skill",
    "activate_skill",
    "skill_view",
];

/// Arguments with the name of a skill.
const NAMES: [&str; 7] = ["skill", "name", "skill_name", "skillName", "command", "id", "path"];

/// The file of a skill.
const SKILL: &str = "SKILL.md";

/// Files with instructions for an agent.
const INSTRUCTIONS: [&str; 10] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "AGENT.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
];

/// A skill, or a file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The kind.
    pub kind: LoadKind,
    /// The name.
    pub name: String,
    /// The file, as the agent named it.
    pub path: Option<String>,
}

impl Load {
    /// The load of a file, if it is one of a skill or of instructions.
    #[must_use]
    pub fn of_file(path: &str) -> Option<Self> {
        let trimmed = path.trim().trim_end_matches(['/', '\\']);
        if let Some((_, name)) = trimmed.split_once("skill://") {
            let name = name.split('/').find(|part| !part.is_empty())?;
            return Some(Self { kind: LoadKind::Skill, name: name.to_owned(), path: Some(trimmed.to_owned()) });
        }
        let mut parts = trimmed.rsplit(['/', '\\']).filter(|part| !part.is_empty() && *part != ".");
        let (file, folder) = (parts.next()?, parts.next());
        let of = |kind, name: &str| Some(Self { kind, name: name.to_owned(), path: Some(trimmed.to_owned()) });
        match () {
            () if file.eq_ignore_ascii_case(SKILL) => of(LoadKind::Skill, folder.unwrap_or(file)),
            () if INSTRUCTIONS.iter().any(|name| name.eq_ignore_ascii_case(file)) => of(LoadKind::Instructions, file),
            () => None,
        }
    }
}

/// Whether a tool of this name loads a skill in a common agent.
#[must_use]
pub fn loads_a_skill(tool: &str) -> bool {
    TOOLS.iter().any(|known| is_same_tool(known, tool))
}

/// The skill or the instructions that the result of a call has.
#[must_use]
pub fn loaded_by(tool: &str, arguments: &Value, tools: &ToolSettings) -> Option<Load> {
    if loads_a_skill(tool) || tools.skills.iter().any(|own| own == tool) {
        let name = NAMES.iter().find_map(|name| arguments.get(*name)?.as_str()).map(str::trim);
        let name = name.filter(|name| !name.is_empty())?;
        let of_file = Load::of_file(name).filter(|load| load.kind == LoadKind::Skill);
        return Some(of_file.unwrap_or(Load { kind: LoadKind::Skill, name: name.to_owned(), path: None }));
    }
    if let [(path, FileOperation::Read)] = files_of(tool, arguments, &tools.files).as_slice() {
        return Load::of_file(path);
    }
    let mut shown = shell::uses(tool, arguments).into_iter().filter_map(|it| match it {
        Use::Shown(path) => Load::of_file(&path),
        Use::Removed(_) | Use::Changed(_) | Use::Written(_) => None,
    });
    // The output of several files has no names in it.
    shown.next().filter(|_| shown.next().is_none())
}

/// The skill or the instructions that a message has which a harness wrote in the name of the user.
#[must_use]
pub fn loaded_in(message: &str) -> Option<Load> {
    let message = message.trim_start();
    let line = |text: &str| text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
    if let Some(folder) = message.strip_prefix("Base directory for this skill:").and_then(line) {
        return Load::of_file(&format!("{folder}/{SKILL}"));
    }
    if let Some(folder) = message.strip_prefix("# AGENTS.md instructions for ").and_then(line) {
        return Load::of_file(&format!("{folder}/AGENTS.md"));
    }
    let inside = message.strip_prefix("<skill>")?;
    let tagged = |tag: &str| {
        let (_, rest) = inside.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim().to_owned()).filter(|text| !text.is_empty())
    };
    Some(Load { kind: LoadKind::Skill, name: tagged("name")?, path: tagged("path") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(load: Option<Load>) -> String {
        load.map_or("nothing".to_owned(), |load| format!("{:?} {} {:?}", load.kind, load.name, load.path))
    }

    #[test]
    fn skills_and_instructions_are_known_by_the_tools_and_files_of_agents() {
        let tools = ToolSettings { skills: vec!["recall".to_owned()], ..ToolSettings::default() };
        for (tool, arguments, expected) in [
            ("Skill", json!({"skill": "pdf"}), "Skill pdf None"),
            ("skill", json!({"name": "pdf"}), "Skill pdf None"),
            ("activate_skill", json!({"name": " pdf "}), "Skill pdf None"),
            ("loadSkill", json!({"path": "/s/pdf/SKILL.md"}), r#"Skill pdf Some("/s/pdf/SKILL.md")"#),
            ("recall", json!({"id": "pdf"}), "Skill pdf None"),
            ("Skill", json!({}), "nothing"),
            ("Skill", json!("pdf"), "nothing"),
            ("read", json!({"path": "skills/pdf/skill.md"}), r#"Skill pdf Some("skills/pdf/skill.md")"#),
            ("read", json!({"path": "skill://pdf/a.md"}), r#"Skill pdf Some("skill://pdf/a.md")"#),
            ("Read", json!({"file_path": "/p/CLAUDE.md"}), r#"Instructions CLAUDE.md Some("/p/CLAUDE.md")"#),
            ("read_file", json!({"path": "a.rs"}), "nothing"),
            ("edit", json!({"path": "SKILL.md"}), "nothing"),
            ("bash", json!({"command": "cat s/pdf/SKILL.md"}), r#"Skill pdf Some("s/pdf/SKILL.md")"#),
            ("bash", json!({"command": "cat s/SKILL.md t/SKILL.md"}), "nothing"),
            ("bash", json!({"command": "rm SKILL.md"}), "nothing"),
            ("read", json!({"path": "./SKILL.md/"}), r#"Skill SKILL.md Some("./SKILL.md")"#),
            ("skill", json!({"name": " "}), "nothing"),
            ("skill", json!({"path": "CLAUDE.md"}), "Skill CLAUDE.md None"),
        ] {
            assert_eq!(shown(loaded_by(tool, &arguments, &tools)), expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn a_harness_puts_skills_and_instructions_into_messages() {
        for (message, expected) in [
            ("Base directory for this skill: /s/pdf\n\nText", r#"Skill pdf Some("/s/pdf/SKILL.md")"#),
            ("<skill>\n<name>pdf</name>\n<path>/s/SKILL.md</path>\nText", r#"Skill pdf Some("/s/SKILL.md")"#),
            ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>", r#"Instructions AGENTS.md Some("/p/AGENTS.md")"#),
            ("Please write a <skill>", "nothing"),
            ("<skill>", "nothing"),
            ("<skill>\n<name> </name>", "nothing"),
            ("<skill><name>pdf</name><path> </path>", "Skill pdf None"),
            ("Base directory for this skill:\n", "nothing"),
            ("# AGENTS.md instructions for \nx", "nothing"),
        ] {
            assert_eq!(shown(loaded_in(message)), expected, "{message}");
        }
    }
}
