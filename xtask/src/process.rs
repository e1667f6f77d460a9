//! Child processes, each in a process group of its own.
//!
//! Invariant: nothing that we start outlives us. Wrangler and node start the
//! runtime as their own child, which survives when only the parent is killed;
//! so a group is always ended as a whole, on every way out: normal end, error,
//! Ctrl-C, SIGTERM. (Only SIGKILL on xtask itself cannot be answered.)

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Process groups that are running now.
static LIVE: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How long a group may take to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// A child and everything that it started.
pub(crate) struct Group {
    child: Child,
    pid: Pid,
}

impl Group {
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed());
        live().push(pid);
        Ok(Self { child, pid })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The exit status, if the child has ended.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks the group to end, waits, and kills what is left.
    pub(crate) fn end(&mut self) {
        signal(self.pid, Signal::SIGTERM);
        let asked_at = Instant::now();
        while asked_at.elapsed() < GRACE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            sleep(Duration::from_millis(20));
        }
        // The child is gone or deaf; its own children may still be there.
        signal(self.pid, Signal::SIGKILL);
        _ = self.child.wait();
        live().retain(|pid| *pid != self.pid);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes Ctrl-C and SIGTERM end all groups before us.
pub(crate) fn end_children_on_interrupt() {
    let installed = ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        let groups: Vec<Pid> = live().clone();
        for pid in &groups {
            signal(*pid, Signal::SIGTERM);
        }
        let asked_at = Instant::now();
        let is_running = |pid: &Pid| killpg(*pid, None).is_ok();
        while asked_at.elapsed() < GRACE && groups.iter().any(is_running) {
            sleep(Duration::from_millis(20));
        }
        for pid in &groups {
            signal(*pid, Signal::SIGKILL);
        }
        // The shell's convention for "ended by SIGINT".
        std::process::exit(130);
    });
    if let Err(error) = installed {
        eprintln!("warning: Ctrl-C will not end the processes we start: {error}");
    }
}

/// Blocks for good once we have been interrupted, so that a command that was
/// ended with us is not reported as a failure while the handler cleans up.
pub(crate) fn stop_here_if_interrupted() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        sleep(Duration::from_secs(1));
    }
}

fn live() -> std::sync::MutexGuard<'static, Vec<Pid>> {
    LIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A group that is gone already is what we wanted.
fn signal(pid: Pid, signal: Signal) {
    _ = killpg(pid, signal);
}
