//! `cargo xtask dev`: set up, build, serve; with `--watch`, again at each change.
//!
//! Invariant: what is served is the last build that succeeded. A failed build is
//! shown and the old one goes on. The server is restarted for every new build,
//! because after a hot reload the runtime may stop firing alarms.
//!
//! Changes are found by asking for the files' times twice a second: a few
//! hundred files take a few milliseconds, and no watcher has to be trusted.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};

use crate::build;
use crate::fingerprint;
use crate::prerequisites;
use crate::process;
use crate::progress;
use crate::project::{Profile, Project};
use crate::serve;

const EVERY: Duration = Duration::from_millis(400);

const WATCHED: &[&str] = &["frontend", "lessons", "worker", "assets", "Cargo.toml", "Cargo.lock"];

pub(crate) fn dev(project: &Project, profile: Profile, port: u16, watch: bool) -> Result<()> {
    if watch && profile == Profile::Release {
        bail!("--watch is for development builds: a release build takes minutes each time");
    }
    let started_at = Instant::now();
    serve::check_port(port)?;
    prerequisites::ensure(project)?;
    // Before the build, so that what is edited meanwhile is built again.
    let mut seen = snapshot(project)?;
    build::prepare(project, profile)?.install(project, profile)?;
    let mut server = serve::start(project, profile, port)?;
    progress::line(&format!(
        "\n  serving on http://127.0.0.1:{port} after {} (Ctrl-C ends it{})\n",
        progress::seconds(started_at.elapsed()),
        if watch { "; watching for changes" } else { "" }
    ));

    loop {
        sleep(EVERY);
        process::stop_here_if_interrupted();
        if let Some(status) = server.try_wait()? {
            bail!("the server ended ({status}); it says why above");
        }
        if !watch {
            continue;
        }
        let now = settled(project)?;
        if now == seen {
            continue;
        }
        seen = now;
        match build::prepare(project, profile) {
            Err(error) => {
                progress::line(&format!("  ✗ {error:#}; still serving the build before it"));
            }
            Ok(prepared) if prepared.is_new() => {
                server.end();
                prepared.install(project, profile)?;
                server = serve::start(project, profile, port)?;
                progress::line("  ✓ serving the new build; open pages reload");
            }
            Ok(_) => {}
        }
    }
}

type Snapshot = Vec<(PathBuf, Option<SystemTime>, u64)>;

/// The state of the sources once nobody is writing: a checkout or a formatter
/// changes many files, and one build is enough.
fn settled(project: &Project) -> Result<Snapshot> {
    let mut before = snapshot(project)?;
    loop {
        sleep(Duration::from_millis(60));
        let now = snapshot(project)?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
}

fn snapshot(project: &Project) -> Result<Snapshot> {
    let mut seen = Snapshot::new();
    for path in WATCHED {
        for file in fingerprint::files_below(&project.path(path))? {
            // A file that was removed meanwhile is noticed at the next look.
            if let Ok(metadata) = file.metadata() {
                seen.push((file, metadata.modified().ok(), metadata.len()));
            }
        }
    }
    Ok(seen)
}
