//! The texts under `prompts/`, embedded.

/// How a compaction's summary stands in a context. `{{summary}}` is replaced.
pub const COMPACTION_SUMMARY_CONTEXT: &str = include_str!("../prompts/compaction-summary-context.md");

/// How a branch's summary stands in a context. `{{summary}}` is replaced.
pub const BRANCH_SUMMARY_CONTEXT: &str = include_str!("../prompts/branch-summary-context.md");

/// `template` with each `{{name}}` replaced. One pass over the template, so nothing in the values is taken for a name.
#[must_use]
pub fn render(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut rest = template.trim_end();
    while let Some(open) = rest.find("{{") {
        out.push_str(&rest[..open]);
        let after = &rest[open + 2..];
        let known = after.find("}}").and_then(|close| {
            let value = values.iter().find(|(name, _)| *name == after[..close].trim())?;
            Some((close, value.1))
        });
        match known {
            Some((close, value)) => {
                out.push_str(value);
                rest = &after[close + 2..];
            }
            None => {
                out.push_str("{{");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_templates() {
        assert_eq!(render("a {{x}} {{y}} {{z}}\n", &[("x", "{{y}}"), ("y", "2")]), "a {{y}} 2 {{z}}");
    }
}
