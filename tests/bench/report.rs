//! The table that `make bench` prints, and on which machine.

use std::process::Command;

/// Prints each line as it is measured.
pub(crate) struct Report;

impl Report {
    /// Say where this was measured.
    pub(crate) fn begin() -> Report {
        let cores = std::thread::available_parallelism().map_or_else(|_| "?".into(), |n| n.to_string());
        println!(
            "Consort {} on {}, {cores} cores, {}; {}",
            env!("CARGO_PKG_VERSION"),
            processor(),
            first_line("uname", &["-sr"]),
            first_line("sbcl", &["--version"])
        );
        if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
            println!("Load before the start: {}", load.split(' ').take(3).collect::<Vec<_>>().join(" "));
        }
        println!("\n{:<64} {:>10} {:>7}  aim", "medians", "", "ratio");
        Report
    }

    pub(crate) fn time(&self, what: &str, milliseconds: f64, aim: &str) {
        println!("{what:<64} {:>10} {:>7}  {aim}", readable(milliseconds), "");
    }

    pub(crate) fn ratio(&self, what: &str, milliseconds: f64, base: f64, aim: &str) {
        println!("{what:<64} {:>10} {:>7.2}  {aim}", readable(milliseconds), milliseconds / base);
    }

    pub(crate) fn size(&self, what: &str, bytes: f64, aim: &str) {
        println!("{what:<64} {:>7.1} MB {:>7}  {aim}", bytes / 1e6, "");
    }
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values {
        [] => f64::NAN,
        _ if values.len() % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

fn readable(milliseconds: f64) -> String {
    if milliseconds < 10.0 { format!("{milliseconds:.3} ms") } else { format!("{milliseconds:.0} ms") }
}

fn processor() -> String {
    let linux = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(": ")?.1.to_owned())
    });
    linux.unwrap_or_else(|| first_line("sysctl", &["-n", "machdep.cpu.brand_string"]))
}

fn first_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or("unknown").to_owned()
}
