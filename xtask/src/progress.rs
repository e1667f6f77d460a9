//! One line for each slow step: what it does and how long it has taken.
//!
//! Invariant: a step is never silent for long and never floods the screen. Its
//! output goes to `.fencepost/logs/`, a failure shows it, a success does not.
//! On a terminal the line counts the seconds; elsewhere (CI) there is a line at
//! the end, and one every 20 seconds until then.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::{self, Group};
use crate::project::Project;

/// No step may hang a test run for ever.
const LIMIT: Duration = Duration::from_secs(30 * 60);
const STILL_EVERY: Duration = Duration::from_secs(20);
/// How much of a failed step's output is worth a screen.
const LINES_SHOWN_MAX: usize = 250;

/// Steps that run at this moment: two at once must not rewrite one line.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static SCREEN: Mutex<()> = Mutex::new(());

/// How a step went.
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) output: String,
    log: PathBuf,
}

/// Runs a step that must succeed, and returns what it printed.
pub(crate) fn run(project: &Project, label: &str, command: &mut Command) -> Result<String> {
    let outcome = attempt(project, label, command)?;
    if !outcome.success {
        show_output(&outcome);
        bail!("{label} failed; the full output is in {}", outcome.log.display());
    }
    Ok(outcome.output)
}

/// Runs a step that may fail; the caller shows the output.
pub(crate) fn attempt(project: &Project, label: &str, command: &mut Command) -> Result<Outcome> {
    let log = log_path(project, label)?;
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let errors = file.try_clone()?;
    command.stdout(Stdio::from(file)).stderr(Stdio::from(errors));

    let started_at = Instant::now();
    let mut group = Group::spawn(command)
        .with_context(|| format!("{label}: cannot run {}", command.get_program().display()))?;
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let mut told_at = started_at;
    let status = loop {
        if let Some(status) = group.try_wait()? {
            break Some(status);
        }
        if started_at.elapsed() > LIMIT {
            break None;
        }
        if rewrites_lines() {
            if told_at.elapsed() > Duration::from_millis(250) {
                told_at = Instant::now();
                rewrite(&format!(
                    "  … {label}  {}  {}",
                    seconds(started_at.elapsed()),
                    last_line(&log)
                ));
            }
        } else if told_at.elapsed() > STILL_EVERY {
            told_at = Instant::now();
            line(&format!("  … {label}: {} so far", seconds(started_at.elapsed())));
        }
        sleep(Duration::from_millis(25));
    };
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    drop(group);
    process::stop_here_if_interrupted();

    let success = status.is_some_and(|status| status.success());
    let mark = if success { '✓' } else { '✗' };
    line(&format!("  {mark} {label}  {}", seconds(started_at.elapsed())));
    let mut output = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if status.is_none() {
        output.push_str("\nended by xtask: it took longer than 30 minutes\n");
    }
    Ok(Outcome { success, output, log })
}

/// Says that a step had nothing to do.
pub(crate) fn unchanged(label: &str) {
    line(&format!("  · {label}: unchanged"));
}

/// Prints a line of its own, over whatever the running step shows.
pub(crate) fn line(text: &str) {
    let _screen = SCREEN.lock();
    if io::stdout().is_terminal() {
        print!("\r\x1b[2K");
    }
    println!("{text}");
    _ = io::stdout().flush();
}

/// The end of what a failed step printed.
pub(crate) fn show_output(outcome: &Outcome) {
    let lines: Vec<&str> = outcome.output.lines().collect();
    let skipped = lines.len().saturating_sub(LINES_SHOWN_MAX);
    if skipped > 0 {
        line(&format!("    ({skipped} lines before this in {})", outcome.log.display()));
    }
    for text in &lines[skipped..] {
        line(&format!("    {text}"));
    }
}

pub(crate) fn seconds(elapsed: Duration) -> String {
    let n_seconds = elapsed.as_secs();
    if n_seconds < 60 {
        format!("{:.1} s", elapsed.as_secs_f64())
    } else {
        format!("{} min {:02} s", n_seconds / 60, n_seconds % 60)
    }
}

fn log_path(project: &Project, label: &str) -> Result<PathBuf> {
    let folder = project.scratch("logs");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let name: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Ok(folder.join(format!("{name}.log")))
}

fn rewrites_lines() -> bool {
    io::stdout().is_terminal() && RUNNING.load(Ordering::SeqCst) == 1
}

fn rewrite(text: &str) {
    let _screen = SCREEN.lock();
    // A wrapped line could not be taken back; 78 fits every terminal.
    let short: String = text.chars().take(78).collect();
    print!("\r\x1b[2K{short}");
    _ = io::stdout().flush();
}

/// The last line that the step has printed, read from the end of its log.
fn last_line(log: &Path) -> String {
    let read_tail = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(400)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let tail = read_tail().unwrap_or_default();
    tail.lines().map(str::trim).rfind(|text| !text.is_empty()).unwrap_or_default().to_owned()
}
