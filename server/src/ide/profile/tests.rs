#![allow(clippy::unwrap_used)]

use super::*;
use crate::image::api::profile::Stack;
use crate::model::evaluation::Clipped;
use crate::model::stack_frame::StackFrame;

fn answer(stacks: &[(&str, u64)]) -> ProfileOutcome {
    let mut profile = Profile { milliseconds: 8420.0, bytes: 17_511_220, ..Profile::default() };
    for (frames, count) in stacks {
        let frames = frames.split(';').map(|frame| match profile.names.iter().position(|name| name == frame) {
            Some(index) => index,
            None => {
                profile.names.push(frame.to_owned());
                profile.names.len() - 1
            }
        });
        let frames = frames.collect();
        profile.stacks.push(Stack { count: *count, frames });
    }
    let values = vec![Clipped { text: "49685034".into(), omitted: 0 }];
    let outcome = EvalOutcome { values, ..EvalOutcome::empty(EvalStatus::Ok, None) };
    ProfileOutcome { outcome, profile }
}

fn asked(mode: ProfileMode, report: ReportFormat) -> ProfileSettings {
    ProfileSettings { mode, report, interval: 0.01 }
}

fn text(stacks: &[(&str, u64)], asked: &ProfileSettings) -> String {
    render(&ProfileReport::new(answer(stacks), asked), asked)
}

const CALLS: [(&str, u64); 5] = [
    ("MAIN;LOOP;HEAVY", 542),
    ("MAIN;LOOP;DATA", 122),
    ("MAIN;LOOP;DATA;CHECK", 100),
    ("MAIN;LOOP", 188),
    ("MAIN;INIT", 48),
];

#[test]
fn a_flat_report_is_the_contracts_table() {
    insta::assert_snapshot!(text(&CALLS, &asked(ProfileMode::Cpu, ReportFormat::Flat)), @r"
    Statistical Profile (CPU mode)
    Total samples: 1000
    Sample interval: 0.01s
    Duration: 8.42s

    Function                    Samples    Self%    Cumulative%
    -----------------------------------------------------------
    HEAVY                           542    54.2%          54.2%
    LOOP                            188    18.8%          73.0%
    DATA                            122    12.2%          85.2%
    CHECK                           100    10.0%          95.2%
    INIT                             48     4.8%         100.0%

    Top 3 hot spots account for 85% of execution time.

    Result: 49685034
    ");
}

#[test]
fn a_graph_report_is_the_contracts_tree() {
    insta::assert_snapshot!(text(&CALLS, &asked(ProfileMode::Cpu, ReportFormat::Graph)), @r"
    Statistical Profile (CPU mode)
    Total samples: 1000

    Call Graph (inclusive times):

    MAIN [100.0%]
      ├─ LOOP [95.2%]
      │   ├─ HEAVY [54.2%]
      │   └─ DATA [22.2%]
      │       └─ CHECK [10.0%]
      └─ INIT [4.8%]

    Function details:
      MAIN: 100.0% inclusive, 0.0% exclusive (0 samples)
      LOOP: 95.2% inclusive, 18.8% exclusive (188 samples)
      HEAVY: 54.2% inclusive, 54.2% exclusive (542 samples)
      DATA: 22.2% inclusive, 12.2% exclusive (122 samples)
      CHECK: 10.0% inclusive, 10.0% exclusive (100 samples)
      INIT: 4.8% inclusive, 4.8% exclusive (48 samples)

    Note: Percentages show inclusive time (function + callees)

    Result: 49685034
    Duration: 8.42s
    ");
}

#[test]
fn allocation_has_bytes_by_share_of_what_the_image_counted() {
    insta::assert_snapshot!(text(&[("F;HOG", 90), ("F;SMALL", 10)], &asked(ProfileMode::Alloc, ReportFormat::Flat)), @r"
    Statistical Profile (ALLOC mode)
    Total samples: 100
    Sample interval: 0.01s

    Function                    Samples      Bytes        %
    -------------------------------------------------------
    HOG                              90    15.0 MB    90.0%
    SMALL                            10     1.7 MB    10.0%

    Total allocation: 16.7 MB

    Result: 49685034
    Duration: 8.42s
    ");
}

#[test]
fn recursion_counts_once_and_is_one_node() {
    let facts =
        ProfileReport::new(answer(&[("F;F;F", 5), ("F;F;F;F;G;F", 5)]), &asked(ProfileMode::Cpu, ReportFormat::Flat));
    assert_eq!(facts.rows[0].function, "F");
    assert_eq!((facts.rows[0].samples, facts.rows[0].inclusive_percent), (10, 100.0));
    assert_eq!((facts.tree.len(), facts.tree[0].samples, facts.tree[0].own), (1, 10, 5));
    assert_eq!(facts.folded, ["F;F;F 5", "F;F;F;F;G;F 5"]);
}

#[test]
fn arithmetic_is_its_caller_s_own_in_the_table_and_itself_in_the_tree() {
    let stacks = [("HOT", 5), ("HOT;SB-VM::GENERIC-+;SB-KERNEL:TWO-ARG-+", 4), ("HOT;SB-KERNEL:TWO-ARG-*", 1)];
    let facts = ProfileReport::new(answer(&stacks), &asked(ProfileMode::Cpu, ReportFormat::Graph));
    assert_eq!((facts.rows[0].function.as_str(), facts.rows[0].self_percent), ("HOT", 100.0));
    assert_eq!((facts.tree[0].own, facts.tree[0].children.len()), (5, 2));
    let graph = text(&stacks, &asked(ProfileMode::Cpu, ReportFormat::Graph));
    assert!(graph.contains("HOT: 100.0% inclusive, 50.0% exclusive (5 samples)"), "{graph}");
    assert!(graph.contains("SB-KERNEL:TWO-ARG-+ [40.0%]"), "{graph}");
}

fn adds_up(node: &Node) -> bool {
    node.own + node.children.iter().map(|child| child.samples).sum::<u64>() == node.samples
        && node.children.iter().all(adds_up)
}

fn size(nodes: &[Node]) -> usize {
    nodes.iter().map(|node| 1 + size(&node.children)).sum()
}

#[test]
fn a_large_tree_is_cut_and_still_adds_up() {
    let many: Vec<(String, u64)> = (0..3000u64)
        .map(|number| (format!("MAIN;A{};B{};C{number}", number % 7, number % 91), 1 + number % 5))
        .collect();
    let many: Vec<(&str, u64)> = many.iter().map(|(stack, count)| (stack.as_str(), *count)).collect();
    let facts = ProfileReport::new(answer(&many), &asked(ProfileMode::Cpu, ReportFormat::Graph));
    assert!(facts.tree.iter().all(adds_up));
    assert_eq!(facts.tree.iter().map(|node| node.samples).sum::<u64>(), facts.samples);
    assert!(size(&facts.tree) < 1500, "{}", size(&facts.tree));
    assert!(facts.rows.len() <= 2 * TABLE_ROWS && facts.folded.len() <= FOLDED);
    let flat = text(&many, &asked(ProfileMode::Cpu, ReportFormat::Flat));
    assert!(flat.contains("(Other functions)") && flat.contains("100.0%"), "{flat}");
}

#[test]
fn no_samples_are_explained() {
    let quick = |milliseconds: f64, mode| {
        let mut answer = answer(&[]);
        answer.profile.milliseconds = milliseconds;
        let asked = asked(mode, ReportFormat::Flat);
        render(&ProfileReport::new(answer, &asked), &asked)
    };
    insta::assert_snapshot!(quick(0.2, ProfileMode::Cpu), @r"
    Statistical Profile (CPU mode)
    Total samples: 0

    Warning: Code executed too quickly to collect samples.
    (Duration: <0.01s)

    For reliable profiling, code should run at least 0.5 seconds.

    Result: 49685034
    Duration: <0.01s
    ");
    assert!(quick(2000.0, ProfileMode::Cpu).contains("mode `time`"));
    assert!(quick(2.0, ProfileMode::Alloc).contains("allocated too little"));
}

#[test]
fn an_error_says_that_profiling_stopped() {
    let mut failed = answer(&[("F", 20)]);
    failed.outcome.status = EvalStatus::Error;
    failed.outcome.values.clear();
    failed.outcome.error = Some(crate::model::evaluation::EvalError {
        kind: "SIMPLE-ERROR".into(),
        message: "intentional error".into(),
        operation: None,
        backtrace: vec![StackFrame { text: "(ERROR \"intentional error\")".into(), ..StackFrame::default() }],
        unread: None,
    });
    let asked = asked(ProfileMode::Cpu, ReportFormat::Flat);
    insta::assert_snapshot!(render(&ProfileReport::new(failed, &asked), &asked), @r#"
    [ERROR] SIMPLE-ERROR
    intentional error

    [Backtrace]
    0: (ERROR "intentional error")

    (Profiling stopped due to error)
    "#);
}
