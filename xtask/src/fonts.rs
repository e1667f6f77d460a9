//! The page's fonts, from npm packages, under names that may be cached for ever.
//!
//! Invariant: exactly the fonts that the styles or index.html name are served,
//! each family with its license. A name that no package has is an error: it
//! would be a silent fallback to another typeface.
//!
//! A font has what the page can show: ASCII, every other character of the sources,
//! and the weights from 400 to 700. That is half of the whole font.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::fingerprint::{self, Fingerprint, MANIFESTS, Stamp};
use crate::project::Project;
use serde_json::json;

const PACKAGES: &str = "node_modules/@fontsource-variable";
const FAMILIES: &[&str] = &["inter", "source-serif-4", "jetbrains-mono"];
const PREFIX: &str = "/fonts/";
const SUFFIX: &str = ".woff2";

/// What the page can show is somewhere in these.
const TEXTS: &[&str] = &["frontend", "lessons", "worker/protocol/src"];
/// The lightest and the heaviest weight of the styles.
const WEIGHTS: [u32; 2] = [400, 700];

/// Old and new address of each font.
pub(crate) type Renames = Vec<(String, String)>;

/// Copies the fonts that `texts` name to `dist/fonts/`, hash in the name.
pub(crate) fn copy(project: &Project, dist: &Path, texts: &[&str]) -> Result<Renames> {
    let folder = dist.join("fonts");
    fs::create_dir_all(&folder)?;
    for family in FAMILIES {
        let license = project.path(PACKAGES).join(family).join("LICENSE");
        fs::copy(&license, folder.join(format!("{family}-LICENSE.txt")))
            .with_context(|| format!("cannot copy {}", license.display()))?;
    }
    let names: BTreeSet<String> = texts.iter().flat_map(|text| names_in(text)).collect();
    let subsets = subsets(project, &names)?;
    let mut renames = Renames::new();
    for name in names {
        let bytes = fs::read(subsets.join(format!("{name}{SUFFIX}")))?;
        let hashed = format!("{name}-{}{SUFFIX}", fingerprint::of_bytes(&bytes));
        fs::write(folder.join(&hashed), &bytes)?;
        renames.push((format!("{PREFIX}{name}{SUFFIX}"), format!("{PREFIX}{hashed}")));
    }
    Ok(renames)
}

/// The folder with the fonts cut down; made anew only when something about them changed.
fn subsets(project: &Project, names: &BTreeSet<String>) -> Result<PathBuf> {
    let text = characters(project)?;
    let mut fingerprint = Fingerprint::new(concat!(file!(), " 1"))
        .inputs(project, MANIFESTS)?
        .inputs(project, &["xtask/src/fonts.mjs"])?
        .text(&text);
    let folder = project.scratch("fonts");
    let mut fonts = Vec::new();
    for name in names {
        fingerprint = fingerprint.text(name);
        let to = folder.join(format!("{name}{SUFFIX}"));
        fonts.push(json!({ "from": locate(project, name)?, "to": to }));
    }
    let stamp = Stamp::new(project, "fonts", fingerprint.finish());
    if stamp.is_fresh(&folder) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    let order = json!({ "text": text, "weights": WEIGHTS, "fonts": fonts });
    let mut child = project
        .command("node")
        .arg(project.path("xtask/src/fonts.mjs"))
        .stdin(Stdio::piped())
        .spawn()
        .context("could not run node")?;
    child.stdin.take().context("node has no input")?.write_all(order.to_string().as_bytes())?;
    if !child.wait()?.success() {
        bail!("the fonts could not be cut down; the lines above say why");
    }
    stamp.write()?;
    Ok(folder)
}

/// ASCII, and every other character of the texts.
fn characters(project: &Project) -> Result<String> {
    let mut found: BTreeSet<char> = (' '..='~').collect();
    for folder in TEXTS {
        for file in fingerprint::files_below(&project.path(folder))? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            found.extend(text.chars().filter(|c| !c.is_control()));
        }
    }
    Ok(found.into_iter().collect())
}

fn locate(project: &Project, name: &str) -> Result<PathBuf> {
    for family in FAMILIES {
        let file =
            project.path(PACKAGES).join(family).join("files").join(format!("{name}{SUFFIX}"));
        if name.starts_with(family) && file.is_file() {
            return Ok(file);
        }
    }
    bail!(
        "no font package has {name}{SUFFIX}: look in {PACKAGES}/*/files \
         (e.g. inter-latin-wght-normal{SUFFIX})"
    )
}

/// The `name` of every `/fonts/name.woff2` in a text.
fn names_in(text: &str) -> BTreeSet<String> {
    text.match_indices(PREFIX)
        .filter_map(|(at, _)| {
            let rest = &text[at + PREFIX.len()..];
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let end = rest.find(|c| !is_name(c))?;
            rest[end..].starts_with(SUFFIX).then(|| rest[..end].to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_font_once() {
        let css = "src:url(/fonts/inter-latin-wght-normal.woff2) format('woff2');\
                   src:url('/fonts/inter-latin-wght-normal.woff2'); url(/fonts/x.ttf) /fonts/";
        let names: Vec<String> = names_in(css).into_iter().collect();
        assert_eq!(names, ["inter-latin-wght-normal"]);
    }
}
