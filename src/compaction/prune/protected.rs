//! The tools whose results pruning keeps, by the names that agents give them.

use crate::summary::{
    files::{reads_a_file, skills::loads_a_skill},
    shell::is_same_tool,
};

/// Whether a setting names a tool. `read` and `skill` name the tools with that role in every known agent.
pub(super) fn is_protected(names: &[String], tool: &str) -> bool {
    names.iter().any(|name| match name.as_str() {
        _ if is_same_tool(name, tool) => true,
        "read" => reads_a_file(tool),
        "skill" => loads_a_skill(tool),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::PruneSettings;

    #[test]
    fn the_tools_of_agents_that_read_files_and_load_skills_are_protected() {
        let protected = |tool: &str| is_protected(&PruneSettings::default().protected_tools, tool);
        for tool in ["read", "Read", "read_file", "readFile", "view", "NotebookRead", "skill", "Skill", "load_skill"] {
            assert!(protected(tool), "{tool}");
        }
        for tool in ["bash", "Bash", "edit", "write_file", "view_image", "reading", "skills", ""] {
            assert!(!protected(tool), "{tool}");
        }
    }

    #[test]
    fn another_name_in_the_setting_means_that_tool_alone() {
        let protected = |tool: &str| is_protected(&["read_file".to_owned()], tool);
        assert_eq!(
            ["read_file", "ReadFile", "read", "Read", "skill"].map(protected),
            [true, true, false, false, false]
        );
        assert!(!is_protected(&[], "read"));
    }
}
