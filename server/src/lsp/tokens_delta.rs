//! `textDocument/semanticTokens/full/delta` (LSP 3.17): the changes since the tokens that the
//! client has.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::locked::lock;
use lsp_types::*;

/// The tokens last sent to a client, by document.
#[derive(Debug, Default)]
pub(super) struct SentTokens(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    tokens: HashMap<Url, (u64, Vec<SemanticToken>)>,
}

impl SentTokens {
    /// Returns the result for a whole document.
    pub(super) fn full(&self, uri: Url, data: Vec<SemanticToken>) -> SemanticTokens {
        let (result_id, _) = self.keep(uri, &data);
        SemanticTokens { result_id: Some(result_id), data }
    }

    /// Returns the difference from the tokens with result id `previous`, or all tokens if these are
    /// not the ones sent last.
    pub(super) fn delta(&self, uri: Url, previous: &str, data: Vec<SemanticToken>) -> SemanticTokensFullDeltaResult {
        let (result_id, before) = self.keep(uri, &data);
        let result_id = Some(result_id);
        match before.filter(|(id, _)| id.to_string() == previous) {
            Some((_, before)) => SemanticTokensDelta { result_id, edits: edits(&before, &data) }.into(),
            None => SemanticTokens { result_id, data }.into(),
        }
    }

    /// Removes a closed document's tokens.
    pub(super) fn forget(&self, uri: &Url) {
        self.lock().tokens.remove(uri);
    }

    fn keep(&self, uri: Url, data: &[SemanticToken]) -> (String, Option<(u64, Vec<SemanticToken>)>) {
        let mut inner = self.lock();
        inner.last += 1;
        let id = inner.last;
        (id.to_string(), inner.tokens.insert(uri, (id, data.to_vec())))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        lock(&self.0)
    }
}

/// Returns a single edit that replaces all tokens between the common prefix and suffix, or no edit.
/// Positions count integers, of which a token has five.
fn edits(before: &[SemanticToken], now: &[SemanticToken]) -> Vec<SemanticTokensEdit> {
    let same = |(one, other): &(&SemanticToken, &SemanticToken)| one == other;
    let head = before.iter().zip(now).take_while(same).count();
    let tail = before[head..].iter().rev().zip(now[head..].iter().rev()).take_while(same).count();
    let (gone, come) = (before.len() - head - tail, &now[head..now.len() - tail]);
    if gone == 0 && come.is_empty() {
        return Vec::new();
    }
    let integers = |tokens: usize| u32::try_from(5 * tokens).unwrap_or(u32::MAX);
    let data = (!come.is_empty()).then(|| come.to_vec());
    vec![SemanticTokensEdit { start: integers(head), delete_count: integers(gone), data }]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tokens(columns: &[u32]) -> Vec<SemanticToken> {
        let one = |column: &u32| SemanticToken {
            delta_line: 0,
            delta_start: *column,
            length: 1,
            token_type: 0,
            token_modifiers_bitset: 0,
        };
        columns.iter().map(one).collect()
    }

    fn integers(tokens: &[SemanticToken]) -> Vec<u32> {
        let five = |t: &SemanticToken| [t.delta_line, t.delta_start, t.length, t.token_type, t.token_modifiers_bitset];
        tokens.iter().flat_map(five).collect()
    }

    /// Applies edits as a client does (LSP 3.17, "Semantic Tokens").
    fn applied(before: &[SemanticToken], edits: &[SemanticTokensEdit]) -> Vec<u32> {
        let mut all = integers(before);
        for edit in edits {
            let (start, count) = (edit.start as usize, edit.delete_count as usize);
            all.splice(start..start + count, integers(edit.data.as_deref().unwrap_or_default()));
        }
        all
    }

    #[test]
    fn edits_make_the_new_of_the_old() {
        let texts: [&[u32]; 8] = [&[], &[1], &[1, 2, 3], &[1, 9, 3], &[1, 2, 2, 3], &[1, 1], &[1, 1, 1], &[3, 2, 1]];
        for before in texts {
            for now in texts {
                let (before, now) = (tokens(before), tokens(now));
                let edits = edits(&before, &now);
                assert_eq!(applied(&before, &edits), integers(&now), "{edits:?}");
                assert_eq!(edits.is_empty(), before == now);
            }
        }
    }

    #[test]
    fn only_who_has_the_last_tokens_is_told_the_difference() {
        let sent = SentTokens::default();
        let uri = Url::parse("file:///a.lisp").unwrap();
        let first = sent.full(uri.clone(), tokens(&[1, 2])).result_id.unwrap();
        let SemanticTokensFullDeltaResult::TokensDelta(delta) = sent.delta(uri.clone(), &first, tokens(&[1, 5])) else {
            panic!("not the difference")
        };
        assert_eq!((delta.edits[0].start, delta.edits[0].delete_count), (5, 5));
        let again = sent.delta(uri.clone(), &first, tokens(&[1, 5]));
        assert!(matches!(again, SemanticTokensFullDeltaResult::Tokens(_)), "{again:?}");
        let last = delta.result_id.unwrap();
        sent.forget(&uri);
        assert!(matches!(sent.delta(uri, &last, tokens(&[1])), SemanticTokensFullDeltaResult::Tokens(_)));
    }
}
