//! The picture of times as cumulative distributions: the share of the keys that were answered by
//! each millisecond, a line for each file.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::report::percentile;

/// The size of the plotted area and of the space around it, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const MARGIN: f64 = 48.0;
/// The lines' colours, told apart on light and dark ground.
const COLOURS: [&str; 6] = ["#2f81f7", "#d29922", "#3fb950", "#f85149", "#a371f7", "#8b949e"];

/// Writes an SVG of series of milliseconds to `file`.
pub(crate) fn draw(file: &Path, series: &[(String, Vec<f64>)]) -> Result<()> {
    std::fs::write(file, svg(series)).with_context(|| format!("cannot write {}", file.display()))
}

/// Returns the picture. The axis of the times begins at 0 and ends at the longest one.
fn svg(series: &[(String, Vec<f64>)]) -> String {
    let longest = series.iter().flat_map(|(_, times)| times).fold(1.0, |most: f64, time| most.max(*time));
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
        .into_iter()
        .find(|step| longest / step <= 10.0)
        .unwrap_or(longest);
    let end = (longest / step).ceil() * step;
    let x = |time: f64| MARGIN + WIDTH * time / end;
    let y = |share: f64| MARGIN + HEIGHT * (1.0 - share);
    let (width, height) = (WIDTH + 2.0 * MARGIN, HEIGHT + 2.0 * MARGIN + 20.0 * series.len() as f64);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let mut line = |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").unwrap_or_default();
    line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">"#
    ));
    line(format_args!(
        "<style>text {{ fill: #24292f }} .grid {{ stroke: #d0d7de }} @media (prefers-color-scheme: dark) \
         {{ text {{ fill: #e6edf3 }} .grid {{ stroke: #30363d }} }}</style>"
    ));
    for tick in 0..=(end / step) as usize {
        let time = tick as f64 * step;
        let (at, top, bottom) = (x(time), y(1.0), y(0.0));
        line(format_args!(r#"<path class="grid" d="M{at:.1} {top:.1}V{bottom:.1}"/>"#));
        line(format_args!(r#"<text x="{at:.1}" y="{:.1}" text-anchor="middle">{time} ms</text>"#, bottom + 18.0));
    }
    for percent in [0, 25, 50, 75, 99] {
        let at = y(f64::from(percent) / 100.0);
        line(format_args!(r#"<path class="grid" d="M{MARGIN} {at:.1}H{:.1}"/>"#, MARGIN + WIDTH));
        line(format_args!(r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{percent} %</text>"#, MARGIN - 6.0, at + 4.0));
    }
    for (index, ((name, times), colour)) in series.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        let mut path = format!("M{:.1} {:.1}", x(sorted.first().copied().unwrap_or(0.0)), y(0.0));
        for (number, time) in sorted.iter().enumerate() {
            let share = (number + 1) as f64 / sorted.len() as f64;
            write!(path, "H{:.1}V{:.1}", x(*time), y(share)).unwrap_or_default();
        }
        line(format_args!(r#"<path fill="none" stroke="{colour}" stroke-width="2" d="{path}"/>"#));
        let at = MARGIN * 2.0 + HEIGHT + 20.0 * index as f64;
        let (half, last) = (percentile(times, 0.5), percentile(times, 0.99));
        line(format_args!(r#"<path stroke="{colour}" stroke-width="3" d="M{MARGIN} {:.1}h24"/>"#, at - 4.0));
        line(format_args!(
            r#"<text x="{:.1}" y="{at:.1}">{name}: half within {half:.1} ms, 99 of 100 within {last:.1} ms</text>"#,
            MARGIN + 32.0
        ));
    }
    line(format_args!("</svg>"));
    out
}
