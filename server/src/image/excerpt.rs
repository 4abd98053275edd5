//! Excerpts of a program's output for display: a few lines, bounded, without terminal control
//! characters.

/// The maximum number of lines that are shown.
const LINES: usize = 12;
/// The maximum number of characters of a line that are shown.
const COLUMNS: usize = 200;

/// Returns the last lines of a program's output, for the user. Output that is not text is only
/// mentioned.
pub fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let strange = text.chars().filter(|c| is_strange(*c)).count();
    if strange * 5 > text.chars().count() {
        return format!("({} bytes that are no text)", bytes.len());
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].iter().map(|line| clean(line)).collect::<Vec<_>>().join("\n")
}

/// Returns one line of a program's output in a form that can be displayed.
pub fn clean(line: &str) -> String {
    let mut shown: String = line
        .trim_end()
        .chars()
        .map(|c| if is_strange(c) { '\u{fffd}' } else { c })
        .map(|c| if c == '\t' { ' ' } else { c })
        .take(COLUMNS)
        .collect();
    if line.chars().nth(COLUMNS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Returns true if the character does not occur in text, is a terminal control character, or
/// changes the writing direction.
fn is_strange(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\u{fffd}' || turns || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// Returns the reason why SBCL cannot have the configured heap, if the output states one. The
/// reason is worded to follow a colon.
///
/// SBCL's wording depends on its version and on the cause: the address space, the page table, or a
/// core that needs more memory.
pub(crate) fn heap_fault(printed: &str) -> Option<&str> {
    const SAYS: [&str; 8] = [
        "os_alloc_gc_space",
        "Can't allocate",
        "can't allocate",
        "Cannot allocate memory",
        "cannot allocate memory",
        "dynamic-space-size",
        "dynamic space too small",
        "GC invariant lost",
    ];
    printed.lines().find(|line| SAYS.iter().any(|says| line.contains(says))).map(str::trim)
}

/// Returns true if SBCL reports that its clock goes backward. SBCL can then neither compile nor
/// load.
pub(crate) fn clock_fault(printed: &str) -> bool {
    printed.contains("Negative times?") || (printed.contains("REAL-TIME") && printed.contains("UNSIGNED-BYTE"))
}

/// Returns the advice for the fault of the clock.
pub(crate) fn clock_advice() -> String {
    let faker = match std::env::var("LD_PRELOAD") {
        Ok(preload) if !preload.is_empty() => format!(" (LD_PRELOAD is {})", clean(&preload)),
        _ => String::new(),
    };
    format!(
        "The monotonic clock goes backward for SBCL, which cannot work with that. Something fakes the time{faker}: start Consort \
         without it (`consort stop` first)."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_act_on() {
        let shown = excerpt("one\x1b[31m\r\n\n\u{202e}two\t3\n".as_bytes());
        assert_eq!(shown, "one\u{fffd}[31m\n\u{fffd}two 3");
        let rubbish: Vec<u8> = (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert_eq!(excerpt(&rubbish), "(100000 bytes that are no text)");
        let long = excerpt("x".repeat(5000).as_bytes());
        assert_eq!((long.len(), long.ends_with("x...")), (COLUMNS + 3, true));
        assert_eq!(excerpt("line\n".repeat(1000).as_bytes()).lines().count(), LINES);
        assert_eq!(excerpt(b""), "");
    }

    #[test]
    fn a_heap_that_cannot_be_had_is_recognised() {
        for (says, heap) in [
            ("os_alloc_gc_space(1,0x1000000000,68719476736) failed with ENOMEM\nfatal error", true),
            ("mmap: Cannot allocate memory\nensure_space: failed", true),
            ("dynamic space too small for core: 40000KiB required, 1024KiB available.", true),
            ("fatal error encountered in SBCL pid 1:\nGC invariant lost, file \"gencgc.c\", line 4879", true),
            ("core was built for runtime \"x\" but this is \"y\"", false),
            ("", false),
        ] {
            assert_eq!(heap_fault(says).is_some(), heap, "{says}");
        }
        let says = "The value\n  -4000\nis not of type\n  UNSIGNED-BYTE\nwhen setting slot SB-C::START-REAL-TIME";
        assert!(clock_fault(says) && clock_fault("GC: Negative times?") && !clock_fault("UNSIGNED-BYTE"));
    }
}
