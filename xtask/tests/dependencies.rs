//! The dependency gate: what the pure crates may depend on, as an allow-list.
//!
//! An allow-list and not `cargo tree --invert`: that passes for a misspelt name
//! and for crates nobody thought of. `--target all` looks at every platform, so
//! a dependency only for wasm is seen too.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// `serde` and what its derive needs at compile time.
const SERDE: &[&str] =
    &["serde", "serde_core", "serde_derive", "proc-macro2", "quote", "syn", "unicode-ident"];

/// `serde_json` and what it needs.
const SERDE_JSON: &[&str] = &["serde_json", "itoa", "memchr", "zmij"];

fn dependencies(package: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(root.expect("xtask is below the root"))
        .args(["tree", "--package", package, "--edges", "normal"])
        .args(["--target", "all", "--prefix", "none", "--format", "{p}"])
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "cargo tree failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn check(package: &str, allowed: &[&[&str]]) {
    let found = dependencies(package);
    assert!(found.contains(package), "cargo tree says nothing of {package}");
    let allowed: BTreeSet<String> =
        allowed.iter().flat_map(|names| names.iter()).map(|name| (*name).to_owned()).collect();
    let extra: Vec<&String> = found.difference(&allowed).collect();
    assert!(
        extra.is_empty(),
        "{package} now depends on {extra:?}. It is pure so that it can be model \
         checked and run anywhere; if the dependency is needed, argue it in the \
         commit and add it to the list here."
    );
}

#[test]
fn protocol_depends_on_serde_alone() {
    check("protocol", &[&["protocol"], SERDE]);
}

#[test]
fn lessons_adds_json_alone() {
    check("lessons", &[&["lessons", "protocol"], SERDE, SERDE_JSON]);
}
