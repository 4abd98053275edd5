//! Definitions that an evaluation replaces, and the code that was compiled with the old ones.

use super::Frontend;
use super::requests::compute_all_of;
use crate::model::evaluation::{EvalOutcome, EvalWarning};
use crate::text::recorded_definitions::{Definition, definitions};

/// The maximum number of definitions of one text about which the image is asked.
pub(super) const MAX_DEFINITIONS: usize = 1_000;
/// The type of the warning.
const TYPE: &str = "STALE-CODE";
/// The number of users that one warning names.
const MAX_NAMED: usize = 8;

/// Returns the definitions in a text that is evaluated.
pub(super) async fn definitions_of(text: String) -> Vec<Definition> {
    // Most evaluations define nothing.
    if !text.as_bytes().windows(3).any(|word| word.eq_ignore_ascii_case(b"def")) {
        return Vec::new();
    }
    compute_all_of(text.len(), move || definitions(&text)).await
}

/// Returns true if compiled code may contain a part of a definition of this kind.
pub(super) fn is_compiled_into_uses(kind: &str) -> bool {
    ["macro", "function", "setf function", "constant", "variable", "structure"].contains(&kind)
}

/// Adds a warning about code that was compiled with a definition that the evaluation has replaced.
pub(super) fn add_warning(outcome: &mut EvalOutcome, frontend: Frontend) {
    let stale = std::mem::take(&mut outcome.stale);
    if stale.is_empty() {
        return;
    }
    let more = stale.len().saturating_sub(MAX_NAMED);
    let mut users = stale[..stale.len() - more].join("; ");
    if more > 0 {
        users += &format!("; and {more} more");
    }
    let how = match frontend {
        Frontend::Mcp => ", with code_compile_string or code_reload_package",
        Frontend::Lsp => ", as consort.recompileCallers does",
        Frontend::Cli => "",
    };
    let message = format!("Compiled with the old definition: {users}. Compile these again{how}.");
    outcome.warnings.push(EvalWarning { kind: TYPE.into(), message });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evaluation::EvalStatus;

    #[test]
    fn few_are_named_and_many_are_counted() {
        let told = |number: usize, frontend| {
            let mut outcome = EvalOutcome::empty(EvalStatus::Ok, None);
            outcome.stale = (0..number).map(|number| format!("function P::F{number} expanded P::M")).collect();
            add_warning(&mut outcome, frontend);
            assert_eq!(outcome.stale, [] as [&str; 0]);
            outcome.warnings.pop().map(|warning| format!("{}: {}", warning.kind, warning.message))
        };
        assert_eq!(told(0, Frontend::Mcp), None);
        assert_eq!(
            told(1, Frontend::Mcp).as_deref(),
            Some(
                "STALE-CODE: Compiled with the old definition: function P::F0 expanded P::M. Compile these \
                 again, with code_compile_string or code_reload_package."
            )
        );
        let many = told(20, Frontend::Lsp).unwrap_or_default();
        assert!(many.contains("P::F7 expanded P::M; and 12 more. ") && !many.contains("P::F8"), "{many}");
    }
}
