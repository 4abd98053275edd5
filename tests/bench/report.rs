//! The table that `make bench` prints, and the machine that it was measured on.

use std::cell::RefCell;
use std::process::Command;

/// The aim of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    /// Nothing: the row is for information.
    None,
    /// At most this ratio to the baseline beside it.
    Ratio(f64),
    /// At most this number of milliseconds.
    Time(f64),
    /// At most this number of megabytes (10^6 bytes).
    Size(f64),
}

/// The programs that are measured in the same rounds, and their milliseconds.
pub(crate) type Beside<'a> = (&'a str, &'a [f64]);

/// Prints each line as it is measured.
#[derive(Default)]
pub(crate) struct Report {
    aims: RefCell<u32>,
    missed: RefCell<Vec<String>>,
}

impl Report {
    /// Prints where this is measured.
    pub(crate) fn begin() -> Report {
        println!(
            "Consort {} on {}; {}; {}",
            env!("CARGO_PKG_VERSION"),
            machine(),
            first_line("uname", &["-sr"]),
            first_line("sbcl", &["--version"])
        );
        if let Some(load) = load() {
            println!("Load before the start: {load}");
        }
        println!(
            "Medians; what stands in one line was measured in turns, so that other load hits both sides alike.\n\
             Milliseconds are this machine's at this hour: compare the ratios.\n"
        );
        println!("{:<52} {:>9}  {:<22} {:>6}  {:<13} others, elsewhere", "", "Consort", "beside it", "ratio", "aim");
        Report::default()
    }

    /// Prints a row of times in milliseconds. `others`: the figures of other programs on another
    /// machine.
    pub(crate) fn time(&self, what: &str, ours: &[f64], beside: Option<Beside<'_>>, aim: Aim, others: &str) {
        let ours = median(ours);
        let theirs = beside.map(|(who, times)| (who, median(times)));
        let ratio = theirs.map(|(_, theirs)| ours / theirs);
        let (wanted, reached) = match (aim, ratio) {
            (Aim::Ratio(most), Some(ratio)) => (format!("ratio {most:.2}"), ratio <= most),
            (Aim::Time(most), _) => (format!("{most} ms"), ours <= most),
            _ => (String::new(), true),
        };
        self.line(
            what,
            &readable(ours),
            &theirs.map(|(who, theirs)| format!("{who} {}", readable(theirs))).unwrap_or_default(),
            &ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            (&wanted, reached),
            others,
        );
    }

    /// Prints rows of the median and the 99th percentile of times in milliseconds. `aims`: the
    /// limits in milliseconds.
    pub(crate) fn spread(&self, what: &str, ours: &[f64], beside: Option<Beside<'_>>, aims: (f64, f64)) {
        self.time(&format!("{what}, p50"), ours, beside, Aim::Time(aims.0), "");
        self.time(&format!("{what}, p99"), &[percentile(ours, 0.99)], beside, Aim::Time(aims.1), "");
    }

    /// Prints a row of a size in bytes.
    pub(crate) fn size(&self, what: &str, bytes: f64, aim: Aim) {
        let megabytes = bytes / 1e6;
        let (wanted, reached) = match aim {
            Aim::Size(most) => (format!("{most} MB"), megabytes <= most),
            _ => (String::new(), true),
        };
        self.line(what, &format!("{megabytes:.1} MB"), "", "", (&wanted, reached), "");
    }

    fn line(&self, what: &str, ours: &str, beside: &str, ratio: &str, aim: (&str, bool), others: &str) {
        let (wanted, reached) = aim;
        if !wanted.is_empty() {
            *self.aims.borrow_mut() += 1;
        }
        let wanted = if reached { wanted.to_owned() } else { format!("{wanted} MISSED") };
        if !reached {
            self.missed.borrow_mut().push(what.to_owned());
        }
        let line = format!("{what:<52} {ours:>9}  {beside:<22} {ratio:>6}  {wanted:<13}  {others}");
        println!("{}", line.trim_end());
    }

    /// Prints which aims were reached.
    pub(crate) fn end(self) {
        let (aims, missed) = (self.aims.into_inner(), self.missed.into_inner());
        println!("\n{} of {aims} aims were reached.", aims as usize - missed.len());
        for what in missed {
            println!("Missed: {what}");
        }
        if let Some(load) = load() {
            println!("Load at the end: {load}");
        }
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.as_slice() {
        [] => f64::NAN,
        _ if values.len() % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The value below which a share (0 to 1) of the values is.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((share * last as f64).ceil() as usize).copied().unwrap_or(f64::NAN)
}

fn readable(milliseconds: f64) -> String {
    match milliseconds {
        few if few < 10.0 => format!("{few:.3} ms"),
        some if some < 100.0 => format!("{some:.1} ms"),
        many => format!("{many:.0} ms"),
    }
}

/// The processor, cores and memory.
fn machine() -> String {
    let file = |path| std::fs::read_to_string(path).unwrap_or_default();
    let of = |text: &str, field: &str| {
        let line = text.lines().find(|line| line.starts_with(field))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = of(&file("/proc/cpuinfo"), "model name")
        .unwrap_or_else(|| first_line("sysctl", &["-n", "machdep.cpu.brand_string"]));
    let cores = std::thread::available_parallelism().map_or_else(|_| "?".into(), |cores| cores.to_string());
    let memory = of(&file("/proc/meminfo"), "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let memory = memory.map(|kilobytes| format!(", {:.0} GB", kilobytes / 1e6)).unwrap_or_default();
    format!("{processor}, {cores} cores{memory}")
}

fn load() -> Option<String> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    Some(load.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

fn first_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or("unknown").to_owned()
}
