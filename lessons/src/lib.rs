//! Lessons: prose, scripts, and the runner that plays a script anywhere.
//!
//! A lesson is one Markdown file (`content/`) and one script (`scripts/`). The script is
//! what the learner clicks through, the golden test in the simulator, and the smoke test
//! of a deployment: [`runner`] plays it through a [`driver`], and only the driver differs.
//!
//! Invariant: no outcome is written down anywhere but in an expectation. What a reader
//! sees comes from the objects; what a script expects is compared with it.
//!
//! Reading order: [`script`] for the language, [`client`] for the one honest part that
//! lives outside the objects, then [`runner`] and [`driver`]. [`lesson`] and [`catalogue`]
//! are what the page loads; `publish` (a feature) makes them from the Markdown.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod script;
pub mod driver;
pub mod client;
pub mod runner;
pub mod sim_driver;
pub mod lesson;
pub mod catalogue;
#[cfg(feature = "publish")]
pub mod publish;
