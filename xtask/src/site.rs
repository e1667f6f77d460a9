//! Everything that the static assets serve, put together from what was built.
//!
//! Invariant: a file with a hash in its name never changes and is cached for
//! ever; everything else is asked for again each time. The sources name each
//! other plainly (`/app.js`, `/app.css`, `/app.wasm`, `/fonts/x.woff2`); the
//! hashed names are put in here.
//!
//! `dist/`: index.html, app-*.{js,css,wasm}, fonts/, lessons/, source/ (the
//! machines, for the source panel), openapi.json, `_headers`, all of `assets/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::fingerprint::{self, Fingerprint, Stamp};
use crate::fonts;
use crate::install;
use crate::progress;
use crate::project::{Profile, Project};

const SOURCES: &[&str] = &[
    "assets",
    "frontend/index.html",
    "worker/protocol/src",
    "package-lock.json",
    "xtask/src/site.rs",
    "xtask/src/fonts.rs",
    "xtask/src/fonts.mjs",
    "xtask/src/headers.txt",
    "xtask/src/reload.js",
];

/// A site that is not in its place yet.
pub(crate) struct Built {
    stamp: Stamp,
    /// `None`: nothing had changed, what is in place is current.
    next: Option<PathBuf>,
}

impl Built {
    pub(crate) fn is_new(&self) -> bool {
        self.next.is_some()
    }

    pub(crate) fn install(self, project: &Project, profile: Profile) -> Result<()> {
        if let Some(next) = self.next {
            install::folder(project, &next, &project.dist(profile))?;
            self.stamp.write()?;
        }
        Ok(())
    }
}

/// Puts the site together beside the one in place, if anything has changed.
pub(crate) fn assemble(
    project: &Project,
    profile: Profile,
    page: &Path,
    published: &Path,
    worker_digest: &str,
) -> Result<Built> {
    let mut fingerprint = Fingerprint::new(concat!(file!(), " 1"))
        .inputs(project, SOURCES)?
        .folder(page)?
        .folder(published)?;
    if profile == Profile::Dev {
        // A new Worker reloads the page too, by way of the build id.
        fingerprint = fingerprint.text(worker_digest);
    }
    let stamp = Stamp::new(project, &format!("site-{}", profile.name()), fingerprint.finish());
    let place = project.dist(profile);
    if stamp.is_fresh(&place.join("index.html")) {
        return Ok(Built { stamp, next: None });
    }

    let next = project.scratch(profile.name()).join("dist-next");
    install::remove(&next)?;
    fs::create_dir_all(&next)?;
    install::copy_below(&project.path("assets"), &next, |below| !below.starts_with("styles"))?;
    install::copy_below(published, &next, |_| true)?;
    install::copy_below(&project.path("worker/protocol/src"), &next.join("source"), |below| {
        below.extension().is_some_and(|extension| extension == "rs")
    })?;
    fs::write(next.join("_headers"), include_str!("headers.txt"))?;
    write_page(project, profile, page, &next, stamp.digest())?;
    Ok(Built { stamp, next: Some(next) })
}

/// index.html and what it loads, each file named in the one before it.
fn write_page(
    project: &Project,
    profile: Profile,
    page: &Path,
    dist: &Path,
    build_id: &str,
) -> Result<()> {
    let template = project.path("frontend/index.html");
    let mut html = fs::read_to_string(&template)
        .with_context(|| format!("cannot read {}", template.display()))?;
    let mut css = styles(project, profile)?;
    for (plain, hashed) in fonts::copy(project, dist, &[&css, &html])? {
        css = css.replace(&plain, &hashed);
        html = html.replace(&plain, &hashed);
    }

    let wasm = write_hashed(dist, "wasm", &fs::read(page.join("app.wasm"))?)?;
    let script = fs::read_to_string(page.join("app.js"))?.replace("/app.wasm", &wasm);
    let script = write_hashed(dist, "js", script.as_bytes())?;
    let css = write_hashed(dist, "css", css.as_bytes())?;
    for (plain, hashed) in [("/app.wasm", &wasm), ("/app.js", &script), ("/app.css", &css)] {
        html = html.replace(plain, hashed);
    }
    if profile == Profile::Dev {
        fs::write(dist.join("reload.js"), include_str!("reload.js"))?;
        fs::write(dist.join("build-id.txt"), build_id)?;
        html = html
            .replace("</head>", "<script type=\"module\" src=\"/reload.js\"></script>\n</head>");
    }
    fs::write(dist.join("index.html"), html)?;
    Ok(())
}

/// The address of the file that was written.
fn write_hashed(dist: &Path, extension: &str, bytes: &[u8]) -> Result<String> {
    let name = format!("app-{}.{extension}", fingerprint::of_bytes(bytes));
    fs::write(dist.join(&name), bytes)?;
    Ok(format!("/{name}"))
}

/// `assets/styles/*.css` in the order of their names, in one text.
fn styles(project: &Project, profile: Profile) -> Result<String> {
    let mut css = String::new();
    for file in fingerprint::files_below(&project.path("assets/styles"))? {
        if file.extension().is_some_and(|extension| extension == "css") {
            css.push_str(&fs::read_to_string(&file)?);
            css.push('\n');
        }
    }
    if profile == Profile::Dev || css.is_empty() {
        return Ok(css);
    }
    let folder = project.scratch("release");
    let whole = folder.join("styles.css");
    let minified = folder.join("styles-min.css");
    fs::write(&whole, css)?;
    let mut command = project.command(project.node_bin("esbuild"));
    command
        .arg(&whole)
        .args(["--minify", "--log-level=warning"])
        .arg(format!("--outfile={}", minified.display()));
    progress::run(project, "page: styles", &mut command)?;
    fs::read_to_string(&minified).with_context(|| format!("cannot read {}", minified.display()))
}
