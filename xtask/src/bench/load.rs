//! Closed-loop load: each client sends its next request when it has the reply.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

/// One thing to measure.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// What it is compared with: the rows of one group share a floor.
    pub(crate) group: &'static str,
    /// One for each client; `{n}` in the body counts that client's requests for ever.
    pub(crate) clients: Vec<Client>,
    /// What a reply must contain, so that a fast error does not count.
    pub(crate) expected: &'static str,
}

/// What one client sends.
pub(crate) struct Client {
    pub(crate) url: String,
    pub(crate) body: String,
}

/// One turn of one target.
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Counts on over all turns, so that every token is above the last.
fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Loads a target for so long.
pub(crate) fn drive(target: &Target, duration: Duration) -> Result<Measured> {
    let started_at = Instant::now();
    let latencies_ms = thread::scope(|scope| {
        let clients: Vec<_> = target
            .clients
            .iter()
            .map(|client| {
                scope.spawn(|| one_client(client, target.expected, started_at + duration))
            })
            .collect();
        let mut all = Vec::new();
        for client in clients {
            all.extend(client.join().map_err(|_| anyhow!("a client of the bench panicked"))??);
        }
        anyhow::Ok(all)
    })?;
    let elapsed = started_at.elapsed();
    summarize(latencies_ms, elapsed)
}

fn one_client(client: &Client, expected: &str, until: Instant) -> Result<Vec<f64>> {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(30))).build().into();
    let mut latencies_ms = Vec::new();
    while Instant::now() < until {
        let body = client.body.replace("{n}", &next_number().to_string());
        let sent_at = Instant::now();
        let mut response = agent
            .post(&client.url)
            .header("content-type", "application/json")
            .send(&body)
            .with_context(|| format!("POST {} {body}", client.url))?;
        let text = response.body_mut().read_to_string()?;
        latencies_ms.push(sent_at.elapsed().as_secs_f64() * 1000.0);
        if !text.contains(expected) {
            bail!("POST {} {body} answered {text}, without {expected}", client.url);
        }
    }
    Ok(latencies_ms)
}

fn summarize(mut latencies_ms: Vec<f64>, elapsed: Duration) -> Result<Measured> {
    if latencies_ms.is_empty() {
        bail!("no request was answered in time");
    }
    latencies_ms.sort_by(f64::total_cmp);
    let at = |share: f64| latencies_ms[((latencies_ms.len() - 1) as f64 * share) as usize];
    Ok(Measured {
        per_second: latencies_ms.len() as f64 / elapsed.as_secs_f64(),
        p50_ms: at(0.50),
        p99_ms: at(0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_latencies() {
        let latencies_ms = (1..=100).rev().map(f64::from).collect();
        let measured = summarize(latencies_ms, Duration::from_secs(2)).expect("not empty");
        assert_eq!((measured.per_second, measured.p50_ms, measured.p99_ms), (50.0, 50.0, 99.0));
    }
}
