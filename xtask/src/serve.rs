//! The development server: `wrangler dev` on the build that is in place.
//!
//! Invariant: it listens on 127.0.0.1 only, works without a network, keeps its
//! state in `.fencepost/state/` over restarts, and ends with us.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::Group;
use crate::project::{Profile, Project};

pub(crate) const PORT: u16 = 8787;
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A clear line when something else has the port.
pub(crate) fn check_port(port: u16) -> Result<()> {
    if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
        bail!(
            "port {port} is in use, perhaps by another `cargo xtask dev`: \
             end that, or pass --port N"
        );
    }
    Ok(())
}

/// Starts the server and waits until it answers.
pub(crate) fn start(project: &Project, profile: Profile, port: u16) -> Result<Group> {
    let mut command = project.wrangler();
    command
        .arg("dev")
        .arg(project.worker_build(profile).join("index.js"))
        .arg("--config")
        .arg(project.path("worker/wrangler.toml"))
        .arg("--assets")
        .arg(project.dist(profile))
        .args(["--ip", "127.0.0.1", "--port", &port.to_string()])
        // No debugger: it would take a second fixed port.
        .args(["--inspector-port", "0"])
        .arg("--persist-to")
        .arg(project.scratch("state"))
        // `info` would hide what the Worker logs.
        .args(["--log-level", "log"]);
    let mut group = Group::spawn(&mut command).context("could not run node")?;
    let started_at = Instant::now();
    loop {
        if let Some(status) = group.try_wait()? {
            bail!("wrangler ended before it served anything ({status}); it says why above");
        }
        if answers(port) {
            return Ok(group);
        }
        if started_at.elapsed() > READY_WITHIN {
            bail!("wrangler does not answer on port {port} after {READY_WITHIN:?}");
        }
        sleep(Duration::from_millis(50));
    }
}

/// Whether `GET /` is answered with a success. The port alone says little:
/// wrangler listens before the runtime is there.
fn answers(port: u16) -> bool {
    let ask = || -> std::io::Result<bool> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(300))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        // To the end: the runtime reports a reader that goes away as an error.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    ask().unwrap_or(false)
}
