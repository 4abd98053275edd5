//! The order of completions. Its criteria are the match of the name with the pattern, the kind of
//! name expected at the place, the origin of the name, and how near and often it is used.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::position::ExpectedName;
use super::words::Used;
use crate::ide::name_index::Symbol;

/// The origin of a name, in increasing order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// Another package's exported symbol, which needs a prefix.
    Elsewhere,
    /// A word of this text of which nothing else is known.
    Word,
    /// A symbol of COMMON-LISP.
    Standard,
    /// A symbol exported by a package that this one uses.
    Used,
    /// A symbol of this package.
    Own,
    /// A definition in a file of the workspace.
    Workspace,
    /// A definition in another open text of this package.
    OpenText,
    /// A definition in this text.
    File,
    /// A local binding in scope, with the number of bindings further inside.
    Local(usize),
}

/// The facts about a candidate.
#[derive(Debug)]
pub(super) struct CandidateFacts<'a> {
    /// The score of the match with the pattern.
    pub(super) fit: f32,
    /// The origin of the candidate.
    pub(super) source: Source,
    /// For names of texts: true for an operator, false for a variable, `None` if it is unknown.
    pub(super) operator: Option<bool>,
    /// For names of texts: true for a class or type.
    pub(super) class: bool,
    /// The symbol of the image.
    pub(super) symbol: Option<&'a Symbol>,
    /// The uses of the name near the place.
    pub(super) used: Option<&'a Used>,
    /// True if the name belongs to SBCL itself.
    pub(super) system: bool,
    /// True if the image has the current package, and so most of its names.
    pub(super) loaded: bool,
}

impl CandidateFacts<'_> {
    /// Creates a candidate with no other facts than these.
    pub(super) fn of(fit: f32, source: Source) -> Self {
        CandidateFacts {
            fit,
            source,
            operator: None,
            class: false,
            symbol: None,
            used: None,
            system: false,
            loaded: true,
        }
    }
}

/// Keeps the `most` candidates with the best scores, and those with the same score as the last of
/// them.
pub(super) fn keep_best<T>(found: &mut Vec<(T, f32)>, most: usize) {
    if found.len() > most && most > 0 {
        let (_, (_, least), _) = found.select_nth_unstable_by(most - 1, |(_, a), (_, b)| b.total_cmp(a));
        let least = *least;
        found.retain(|(_, score)| *score >= least);
    }
}

/// Returns the score of a candidate; higher is better.
pub(super) fn score(known: &CandidateFacts, wanted: &ExpectedName) -> f32 {
    known.fit + source_score(known) + role_score(known, wanted) + use_score(known, wanted)
}

fn source_score(known: &CandidateFacts) -> f32 {
    match known.source {
        Source::Elsewhere if known.system => -190.0,
        Source::Elsewhere => -130.0,
        Source::Word => -12.0,
        Source::Standard => 0.0,
        Source::Used => 12.0,
        Source::Own if known.symbol.is_some_and(|symbol| symbol.kind() == "symbol") => -12.0,
        Source::Own => 16.0,
        Source::Workspace => 16.0,
        Source::OpenText => 18.0,
        Source::File => 24.0,
        Source::Local(inner) => 55.0 - inner.min(10) as f32,
    }
}

fn role_score(known: &CandidateFacts, wanted: &ExpectedName) -> f32 {
    let (function, variable, class) = known.symbol.map_or((false, false, false), |symbol| {
        (symbol.function != b'-', symbol.variable != b'-', symbol.class != b'-')
    });
    let class = class || known.class;
    let (function, variable) = match known.operator {
        _ if known.class => (function, variable),
        Some(true) => (true, variable),
        Some(false) => (function, true),
        None => (function, variable),
    };
    // A name that only occurs in the text is known only by its uses.
    let unknown = known.symbol.is_none() && known.operator.is_none();
    match wanted {
        ExpectedName::Operator if function => 20.0,
        ExpectedName::Operator if unknown && !known.loaded && known.used.is_some_and(|used| used.operator > 0) => 12.0,
        ExpectedName::Operator if unknown => -25.0,
        ExpectedName::Operator => -80.0,
        ExpectedName::Value if variable => 22.0,
        ExpectedName::Value if unknown => 0.0,
        ExpectedName::Value if function => -30.0,
        ExpectedName::Value if class => -22.0,
        ExpectedName::Value => -6.0,
        ExpectedName::Type if class => 40.0,
        ExpectedName::Type if unknown => -15.0,
        ExpectedName::Type => -50.0,
        ExpectedName::Slot(_) | ExpectedName::Any | ExpectedName::Loop(_) => match (function, variable) {
            (true, false) => -4.0,
            _ => 0.0,
        },
        ExpectedName::Declaration if class => 10.0,
        ExpectedName::Declaration => -30.0,
    }
}

fn use_score(known: &CandidateFacts, wanted: &ExpectedName) -> f32 {
    let operator = *wanted == ExpectedName::Operator;
    let near = known.used.map_or(0.0, |used| {
        let (same, other) = if operator { (used.operator, used.other) } else { (used.other, used.operator) };
        let times = 13.0 * (1.0 + same as f32).ln() + 2.5 * (1.0 + other as f32).ln();
        let close = (-(used.distance as f32) / 1200.0).exp();
        times + if same > 0 { 26.0 * close } else { 8.0 * close }
    });
    let standard =
        known.source == Source::Standard || known.symbol.is_some_and(|one| one.home() == Some("COMMON-LISP"));
    let usual = if standard { known.symbol.map_or(0.0, |symbol| usual(symbol.lower(), operator)) } else { 0.0 };
    near + 4.0 * usual
}

/// Returns how usual a symbol of COMMON-LISP is in the role: the binary logarithm of the number of
/// its uses in some libraries.
fn usual(name: &str, operator: bool) -> f32 {
    static USUAL: OnceLock<HashMap<&'static str, (f32, f32)>> = OnceLock::new();
    let usual = USUAL.get_or_init(|| {
        let line = |line: &'static str| {
            let mut words = line.split(' ');
            let name = words.next()?;
            Some((name, (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
        };
        include_str!("usual.txt").lines().filter_map(line).collect()
    });
    usual.get(name).map_or(0.0, |(called, other)| if operator { *called } else { *other })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_with_their_equals() {
        let mut found: Vec<(usize, f32)> = [1.0, 5.0, 3.0, 3.0, 2.0, 4.0].into_iter().enumerate().collect();
        keep_best(&mut found, 3);
        found.sort_by_key(|(index, _)| *index);
        assert_eq!(found, [(1, 5.0), (2, 3.0), (3, 3.0), (5, 4.0)]);
        keep_best(&mut found, 4);
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn the_usual_names_are_known() {
        assert!(usual("defun", true) > usual("decf", true));
        assert_eq!(usual("no-such-name", true), 0.0);
    }
}
