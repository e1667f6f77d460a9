//! `cargo xtask bench`: the release build beside a floor and a rival.

use anyhow::{Result, bail};

use crate::project::Project;

pub(crate) fn run(_project: &Project, _args: &[String]) -> Result<()> {
    bail!("there is no bench yet")
}
