//! The dependencies: licences, several versions of one crate, where crates come from, and the lock
//! file of the extension's tools. Without a network.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licences under which a crate may be distributed with this program.
const LICENCES: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "ISC",
    "Zlib",
];
/// Crates of which two versions are built, because others want both. One more is a decision.
const TWICE: [&str; 11] = [
    "bitflags",
    "block-buffer",
    "cpufeatures",
    "crypto-common",
    "digest",
    "hashbrown",
    "sha2",
    "syn",
    "toml_datetime",
    "tower",
    "winnow",
];
/// Packages of the extension's tools that run a program when they are installed.
const INSTALL_SCRIPTS: [&str; 3] = ["node_modules/@vscode/vsce-sign", "node_modules/esbuild", "node_modules/keytar"];

/// Platforms that Consort is built for, one of each system.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin"];

/// The crates that are built on some platform; not those of systems that Consort does not run on.
fn packages() -> Vec<Value> {
    let mut packages: BTreeMap<String, Value> = BTreeMap::new();
    for platform in PLATFORMS {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", platform])
            .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
            .output()
            .unwrap();
        assert!(output.status.success(), "cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        for package in metadata["packages"].as_array().unwrap() {
            packages.insert(package["id"].to_string(), package.clone());
        }
    }
    assert!(packages.len() > 100, "{} packages", packages.len());
    packages.into_values().collect()
}

/// True if the licence expression (SPDX; `/` is an old way to write OR) can be met by [`LICENCES`].
fn may_be_used(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], " ( ").replace('/', " OR ");
    // AND binds stronger than OR. Brackets are met in one form only: (A OR B) AND C.
    let all = |part: &str| part.split(" AND ").all(|one| LICENCES.contains(&one.trim()));
    match expression.split_once(" ( ").and_then(|(before, rest)| Some((before.trim(), rest.split_once(" ( ")?))) {
        Some(("", (within, after))) => may_be_used(within) && after.trim().strip_prefix("AND ").is_none_or(may_be_used),
        Some(_) => false,
        None => expression.split(" OR ").any(all),
    }
}

#[test]
fn licences_are_understood() {
    for (expression, may) in [
        ("MIT OR Apache-2.0", true),
        ("MIT/Apache-2.0", true),
        ("MIT OR GPL-3.0", true),
        ("MIT AND BSD-3-Clause", true),
        ("MIT AND GPL-3.0", false),
        ("GPL-3.0", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(MIT OR Apache-2.0) AND GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(may_be_used(expression), may, "{expression}");
    }
}

#[test]
fn crates_have_licences_that_fit_and_come_from_one_registry() {
    let mut sources = BTreeSet::new();
    for package in packages() {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(may_be_used(licence), "{} {} has the licence {licence:?}", package["name"], package["version"]);
        if let Some(source) = package["source"].as_str() {
            sources.insert(source.to_owned());
        }
    }
    assert!(sources.len() == 1 && sources.iter().all(|source| source.starts_with("registry+")), "{sources:?}");
}

#[test]
fn no_further_crate_is_built_in_two_versions() {
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for package in packages() {
        *versions.entry(package["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let twice: Vec<&str> = versions.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name.as_str()).collect();
    assert_eq!(twice, TWICE, "`cargo tree --duplicates` says who wants them");
}

#[test]
fn every_crate_of_the_lock_file_has_a_checksum() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let lock: toml::Table = std::fs::read_to_string(root.join("Cargo.lock")).unwrap().parse().unwrap();
    for package in lock["package"].as_array().unwrap() {
        let external = package.get("source").is_some();
        assert_eq!(package.get("checksum").is_some(), external, "{}", package["name"]);
    }
}

#[test]
fn the_tools_of_the_extension_are_locked_by_content() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("editors/vscode/package-lock.json")).unwrap();
    let lock: Value = serde_json::from_str(&text).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    assert!(packages.len() > 10);
    let mut scripts = Vec::new();
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        let integrity = package["integrity"].as_str().unwrap_or_default();
        assert!(integrity.starts_with("sha512-"), "{name} is not locked by its content: {integrity:?}");
        // A package from elsewhere than the registry (a URL, a repository) has its place here.
        assert!(package.get("resolved").is_none(), "{name} has a place of its own");
        assert!(package["link"].as_bool() != Some(true), "{name} is a link");
        if package["hasInstallScript"] == true {
            scripts.push(name.as_str());
        }
    }
    assert_eq!(scripts, INSTALL_SCRIPTS, "packages that run a program when they are installed");
}
