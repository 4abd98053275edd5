//! The text of a profile that the contract specifies.

use super::*;
use crate::shown::megabytes;

/// Returns the text that the contract specifies.
pub fn render(facts: &ProfileReport, settings: &ProfileSettings) -> String {
    let mut blocks = Vec::new();
    if let Some(error) = &facts.error {
        blocks.push(backtrace::render(error));
        blocks.push(match facts.status {
            EvalStatus::Timeout => "(Profiling stopped at the deadline)".into(),
            EvalStatus::Interrupted => "(Profiling stopped when it was interrupted)".into(),
            _ => "(Profiling stopped due to error)".into(),
        });
    }
    // The profile of code that was stopped shows why it took so long.
    if matches!(facts.status, EvalStatus::Ok | EvalStatus::Timeout | EvalStatus::Interrupted) {
        blocks.extend(report(facts, settings));
    }
    if facts.error.is_none() {
        blocks.push(result(facts, settings));
    }
    for (heading, text) in [("stdout", &facts.stdout), ("stderr", &facts.stderr)] {
        if !text.is_empty() {
            blocks.push(format!("[{heading}]\n{}", text.strip_suffix('\n').unwrap_or(text)));
        }
    }
    if !facts.warnings.is_empty() {
        blocks.push(format!("[warnings]\n{}", facts.warnings.join("\n")));
    }
    blocks.join("\n\n")
}

fn duration(facts: &ProfileReport) -> String {
    if facts.seconds < 0.01 { "<0.01s".into() } else { format!("{:.2}s", facts.seconds) }
}

fn result(facts: &ProfileReport, settings: &ProfileSettings) -> String {
    let values = match facts.values.as_slice() {
        [] => "; No value".into(),
        values => values.join("\n        "),
    };
    let mut text = format!("Result: {values}");
    // A table of times begins with the duration.
    if facts.samples == 0 || settings.report == ReportFormat::Graph || settings.mode == ProfileMode::Alloc {
        let _ = write!(text, "\nDuration: {}", duration(facts));
    }
    text
}

fn report(facts: &ProfileReport, settings: &ProfileSettings) -> Vec<String> {
    let mode = facts.mode.to_uppercase();
    let mut head = format!("Statistical Profile ({mode} mode)\nTotal samples: {}", facts.samples);
    if facts.samples == 0 {
        return vec![head, no_samples_message(facts, settings)];
    }
    if settings.report == ReportFormat::Flat {
        let _ = write!(head, "\nSample interval: {}s", settings.interval);
        if settings.mode != ProfileMode::Alloc {
            let _ = write!(head, "\nDuration: {}", duration(facts));
        }
    }
    let mut blocks = vec![head];
    match (settings.report, settings.mode) {
        (ReportFormat::Flat, ProfileMode::Alloc) => {
            blocks.push(allocation(facts));
            blocks.push(format!("Total allocation: {}", megabytes(facts.bytes)));
        }
        (ReportFormat::Flat, _) => {
            blocks.push(flat(facts));
            blocks.push(hot_spots(facts));
        }
        (ReportFormat::Graph, _) => {
            blocks.push(format!("Call Graph (inclusive {}):\n\n{}", measured_noun(settings), graph(&facts.tree)));
            blocks.push(details(facts));
            blocks.push("Note: Percentages show inclusive time (function + callees)".into());
        }
    }
    if facts.samples < MIN_SAMPLES {
        blocks.push(format!(
            "Warning: Only {} samples were collected. For reliable profiling, code should run at least 0.5 seconds.",
            facts.samples
        ));
    }
    blocks
}

fn measured_noun(settings: &ProfileSettings) -> &'static str {
    if settings.mode == ProfileMode::Alloc { "allocation" } else { "times" }
}

/// Returns the reason why there are no samples.
fn no_samples_message(facts: &ProfileReport, settings: &ProfileSettings) -> String {
    if settings.mode == ProfileMode::Cpu && facts.seconds >= 10.0 * settings.interval.max(0.01) {
        return format!(
            "Warning: The code used too little processor time to collect samples: it waited.\n(Duration: {})\n\n\
             Profile it in mode `time` to see where.",
            duration(facts)
        );
    }
    if settings.mode == ProfileMode::Alloc {
        return format!("Warning: The code allocated too little to collect samples ({}).", megabytes(facts.bytes));
    }
    format!(
        "Warning: Code executed too quickly to collect samples.\n(Duration: {})\n\n\
         For reliable profiling, code should run at least 0.5 seconds.",
        duration(facts)
    )
}

/// Returns the rows with samples of their own, at most [`TABLE_ROWS`], and the number of all other
/// samples.
fn table_rows(facts: &ProfileReport) -> (Vec<&Row>, u64) {
    let rows: Vec<&Row> = facts.rows.iter().filter(|row| row.samples > 0).take(TABLE_ROWS).collect();
    let others = facts.samples - rows.iter().map(|row| row.samples).sum::<u64>();
    (rows, others)
}

fn width(rows: &[&Row]) -> usize {
    rows.iter().map(|row| label(&row.function).chars().count()).max().unwrap_or(0).max(26)
}

/// Returns a name on one line of a table.
fn label(name: &str) -> String {
    const MAX_CHARS: usize = 60;
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() <= MAX_CHARS {
        name
    } else {
        name.chars().take(MAX_CHARS - 3).chain("...".chars()).collect()
    }
}

fn flat(facts: &ProfileReport) -> String {
    let (rows, others) = table_rows(facts);
    let width = width(&rows);
    let mut text = format!(
        "{:<width$} {:>8} {:>8} {:>14}\n{}",
        "Function",
        "Samples",
        "Self%",
        "Cumulative%",
        "-".repeat(width + 33)
    );
    let mut line = |name: &str, samples: u64, own: f64, sum: f64| {
        let _ = write!(text, "\n{name:<width$} {samples:>8} {:>8} {:>14}", format!("{own:.1}%"), format!("{sum:.1}%"));
    };
    for row in &rows {
        line(&label(&row.function), row.samples, row.self_percent, row.cumulative_percent);
    }
    if others > 0 {
        line("(Other functions)", others, percent(others, facts.samples), 100.0);
    }
    text
}

fn hot_spots(facts: &ProfileReport) -> String {
    let (rows, _) = table_rows(facts);
    let top = rows.len().min(3);
    let share = rows.get(top.saturating_sub(1)).map_or(0.0, |row| row.cumulative_percent).round();
    let spots = if top == 1 { "The top hot spot accounts".into() } else { format!("Top {top} hot spots account") };
    format!("{spots} for {share}% of execution time.")
}

fn allocation(facts: &ProfileReport) -> String {
    let (rows, others) = table_rows(facts);
    let width = width(&rows);
    let mut text =
        format!("{:<width$} {:>8} {:>10} {:>8}\n{}", "Function", "Samples", "Bytes", "%", "-".repeat(width + 29));
    let mut line = |name: &str, samples: u64, bytes: u64| {
        let share = format!("{:.1}%", percent(samples, facts.samples));
        let _ = write!(text, "\n{name:<width$} {samples:>8} {:>10} {share:>8}", megabytes(bytes));
    };
    for row in &rows {
        line(&label(&row.function), row.samples, row.bytes.unwrap_or(0));
    }
    if others > 0 {
        let bytes = u128::from(others) * u128::from(facts.bytes) / u128::from(facts.samples.max(1));
        line("(Other functions)", others, u64::try_from(bytes).unwrap_or(u64::MAX));
    }
    text
}

/// Returns the tree that the contract specifies. Nodes with less than 0.5 % of the samples are only
/// in `structuredContent`.
fn graph(roots: &[Node]) -> String {
    fn write_node(node: &Node, lead: &str, branch: &str, text: &mut String) {
        let _ = writeln!(text, "{lead}{branch}{} [{:.1}%]", label(&node.function), node.percent);
        let below = format!(
            "{lead}{}",
            match branch {
                "" => "  ",
                "├─ " => "│   ",
                _ => "    ",
            }
        );
        let children: Vec<&Node> = node.children.iter().filter(|child| child.percent >= 0.5).collect();
        for (index, child) in children.iter().enumerate() {
            let branch = if index + 1 == children.len() { "└─ " } else { "├─ " };
            write_node(child, &below, branch, text);
        }
    }
    let mut text = String::new();
    for root in roots.iter().filter(|root| root.percent >= 0.5) {
        write_node(root, "", "", &mut text);
    }
    clip(text.trim_end(), 40_000).text
}

fn details(facts: &ProfileReport) -> String {
    let mut rows: Vec<&Row> = facts.rows.iter().collect();
    rows.sort_by(|a, b| b.inclusive_percent.total_cmp(&a.inclusive_percent));
    let lines: Vec<String> = rows
        .iter()
        .take(TABLE_ROWS)
        .map(|row| {
            format!(
                "  {}: {:.1}% inclusive, {:.1}% exclusive ({} samples)",
                label(&row.function),
                row.inclusive_percent,
                percent(row.leaf_samples, facts.samples),
                row.leaf_samples
            )
        })
        .collect();
    format!("Function details:\n{}", lines.join("\n"))
}
