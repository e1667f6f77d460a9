//! The page's fonts, from npm packages, under names that may be cached for ever.
//!
//! Invariant: exactly the fonts that the styles or index.html name are served,
//! each family with its license. A name that no package has is an error: it
//! would be a silent fallback to another typeface.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::fingerprint;
use crate::project::Project;

const PACKAGES: &str = "node_modules/@fontsource-variable";
const FAMILIES: &[&str] = &["inter", "source-serif-4", "jetbrains-mono"];
const PREFIX: &str = "/fonts/";
const SUFFIX: &str = ".woff2";

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
    let mut renames = Renames::new();
    for name in texts.iter().flat_map(|text| names_in(text)).collect::<BTreeSet<_>>() {
        let bytes = fs::read(locate(project, &name)?)?;
        let hashed = format!("{name}-{}{SUFFIX}", fingerprint::of_bytes(&bytes));
        fs::write(folder.join(&hashed), &bytes)?;
        renames.push((format!("{PREFIX}{name}{SUFFIX}"), format!("{PREFIX}{hashed}")));
    }
    Ok(renames)
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
