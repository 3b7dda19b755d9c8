//! Sends pg_net's queued requests: after the commit, at most once, many at a time. Answers become rows. Requests that were
//! taken from the queue are sent and recorded even when the server is asked to stop.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio_postgres::error::SqlState;

use super::listen::{self, Link, WORK, stopped};
use super::metrics::REQUESTS;
use super::outbound::{self, Outbound, PublicOnly};
use super::{JobsConfig, LOOK_EVERY};
use crate::db::{Value, replaced};
use crate::outgoing;

/// The most concurrent requests.
const AT_ONCE: usize = 50;
/// The longest timeout of a request, as long as an edge function may work.
const LONGEST: Duration = Duration::from_secs(400);
/// Requests with a longer timeout than this may take half of the slots, so that others have some.
const SHORT: Duration = Duration::from_secs(60);
const LONG_AT_ONCE: usize = AT_ONCE / 2;
/// The most bytes of an answer that are stored.
const KEPT: usize = 4 << 20;
/// How often an answer is stored that takes too long, as while the table is locked: for ten minutes.
const ATTEMPTS: u32 = 10;
/// The most redirects that are followed.
pub const REDIRECTS: usize = 10;
/// How often unfetched answers are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
const AGAIN_AFTER: Duration = Duration::from_secs(5);

struct Queued {
    id: i64,
    method: String,
    url: String,
    headers: Option<serde_json::Value>,
    body: Option<Vec<u8>>,
    timeout: Duration,
}

/// The result of a request.
#[derive(Default)]
struct Answer {
    status: Option<i32>,
    content_type: Option<String>,
    headers: Option<serde_json::Value>,
    content: Option<String>,
    timed_out: bool,
    error: Option<String>,
}

/// Follows at most this many redirects.
pub fn client(outbound: &Outbound, redirects: usize) -> anyhow::Result<reqwest::Client> {
    let mut builder = outgoing::client()
        .user_agent("pg_net/0.20.0")
        .connect_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(4);
    if outbound.reaches_private {
        // A local stack calls itself without a proxy.
        builder = builder.redirect(match redirects {
            0 => reqwest::redirect::Policy::none(),
            most => reqwest::redirect::Policy::limited(most),
        });
    } else {
        builder = builder.dns_resolver(std::sync::Arc::new(PublicOnly)).no_proxy().redirect(
            reqwest::redirect::Policy::custom(move |attempt| {
                if attempt.previous().len() > redirects || outbound::is_private_literal(attempt.url()) {
                    attempt.stop()
                } else {
                    attempt.follow()
                }
            }),
        );
    }
    Ok(builder.build()?)
}

/// Requests that were taken from the queue.
#[derive(Default)]
struct UnderWay {
    /// Each with its id, and whether it is a long one.
    answers: FuturesUnordered<BoxFuture<'static, (i64, bool, Answer)>>,
    /// How many are long ones.
    long: usize,
}

impl UnderWay {
    async fn next(&mut self) -> Option<(i64, Answer)> {
        let (id, is_long, answer) = self.answers.next().await?;
        self.long -= usize::from(is_long);
        Some((id, answer))
    }

    fn push(&mut self, config: &JobsConfig, http: &reqwest::Client, request: Queued) {
        let is_long = request.timeout > SHORT;
        self.long += usize::from(is_long);
        let (outbound, http) = (config.outbound.clone(), http.clone());
        self.answers.push(async move { (request.id, is_long, send(&outbound, &http, &request).await) }.boxed());
    }

    /// For how many requests there is room, and for how many long ones among them.
    fn room(&self) -> (usize, usize) {
        let all = AT_ONCE.saturating_sub(self.answers.len());
        (all, LONG_AT_ONCE.saturating_sub(self.long).min(all))
    }
}

/// Runs until stopped; reconnects after a lost connection. At the end no more requests are taken, and those under way are
/// finished.
pub async fn run(config: JobsConfig, http: reqwest::Client, mut stop: watch::Receiver<bool>) {
    let (mut under_way, mut database) = (UnderWay::default(), replaced::times());
    loop {
        let current = tokio::select! {
            current = replaced::current() => current,
            () = stopped(&mut stop) => break,
        };
        if current != database {
            // The answers do not belong to the next database.
            under_way = UnderWay::default();
            database = current;
        }
        let outcome = serve(&config, &http, &mut under_way, database, &mut stop).await;
        if replaced::times() != database {
            continue;
        }
        if let Err(error) = outcome {
            tracing::warn!(%error, "the queue of HTTP requests cannot be read; trying again");
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN_AFTER) => {}
            () = stopped(&mut stop) => break,
        }
    }
    if replaced::times() == database
        && !under_way.answers.is_empty()
        && let Err(error) = finish(&config, &mut under_way).await
    {
        tracing::warn!(%error, "the responses to the last HTTP requests could not be stored");
    }
}

/// Until stopped. `database`: of [`replaced::current`].
async fn serve(
    config: &JobsConfig,
    http: &reqwest::Client,
    under_way: &mut UnderWay,
    database: u64,
    stop: &mut watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (client, mut told) = tokio::select! {
        opened = listen::open(&config.service_url, "ferrobase_net") => opened?,
        () = stopped(stop) => return Ok(()),
    };
    anyhow::ensure!(replaced::times() == database, "the database was replaced");
    let mut swept = Instant::now();
    let (mut is_ours, mut looks) = (false, true);
    loop {
        if looks {
            is_ours = listen::is_ours(&client, "pg_net", "net", "wake", "ferrobase_net").await?;
        }
        if is_ours {
            // Each answer makes room for queued requests. A stop does not interrupt this: requests that are deleted and
            // not sent would be lost.
            for request in client.within(WORK, take(&client, under_way.room())).await? {
                under_way.push(config, http, request);
            }
            if swept.elapsed() > SWEEP_EVERY {
                swept = Instant::now();
                let old = "delete from net._http_response where created < now() - interval '6 hours'";
                client.within(WORK, client.execute(old, &[])).await?;
            }
        }
        looks = tokio::select! {
            // A stop comes first, so that nothing more is taken. Notifications come last: anybody can send any number.
            biased;
            () = stopped(stop) => return Ok(()),
            Some((id, answer)) = under_way.next(), if !under_way.answers.is_empty() => {
                record(&client, id, &answer).await?;
                false
            }
            heard = told.recv() => {
                anyhow::ensure!(heard.is_some(), "the connection was lost");
                // Further notifications mean the same work.
                while told.try_recv().is_ok() {}
                true
            }
            () = tokio::time::sleep(LOOK_EVERY) => true,
        };
    }
}

/// Waits for the answers to what is under way and records them, on a new connection: the former may be lost.
async fn finish(config: &JobsConfig, under_way: &mut UnderWay) -> anyhow::Result<()> {
    let (client, _told) = listen::connect(&config.service_url).await?;
    while let Some((id, answer)) = under_way.next().await {
        record(&client, id, &answer).await?;
    }
    Ok(())
}

/// Takes as many requests as there is room for. The transaction ends when they are here: what a connection took that was
/// lost meanwhile stays in the queue.
async fn take(client: &Link, (all, long): (usize, usize)) -> Result<Vec<Queued>, tokio_postgres::Error> {
    if all == 0 {
        return Ok(Vec::new());
    }
    let count = |room: usize| i64::try_from(room).unwrap_or(0);
    let (all, long) = (count(all), count(long));
    let most = i32::try_from(SHORT.as_millis()).unwrap_or(i32::MAX);
    let values: [Value<'_>; 3] = [&all, &long, &most];
    let taken = client.query(
        "with long as (
           select id from net.http_request_queue where timeout_milliseconds > $3
           order by id limit $2 for update skip locked),
         short as (
           select id from net.http_request_queue where timeout_milliseconds <= $3
           order by id limit $1 for update skip locked),
         taken as (select id from (table long union all table short) either order by id limit $1)
         delete from net.http_request_queue where id in (table taken)
         returning id, method::text, url, headers, body, timeout_milliseconds",
        &values,
    );
    let ((), rows) = futures_util::try_join!(client.batch_execute("begin"), taken)?;
    client.batch_execute("commit").await?;
    let queued = |row: &tokio_postgres::Row| Queued {
        id: row.get(0),
        method: row.get(1),
        url: row.get(2),
        headers: row.get(3),
        body: row.get(4),
        timeout: timeout(row.get(5)),
    };
    Ok(rows.iter().map(queued).collect())
}

fn timeout(milliseconds: i32) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)).min(LONGEST)
}

/// Stores an answer, if need be after [`ATTEMPTS`]. One that a project's trigger or constraint refuses is lost, without affecting others.
async fn record(client: &Link, id: i64, answer: &Answer) -> anyhow::Result<()> {
    REQUESTS.note(answer.status.is_some());
    let insert =
        "insert into net._http_response (id, status_code, content_type, headers, content, timed_out, error_msg)
                  values ($1, $2, $3, $4, $5, $6, $7)";
    let values: [Value<'_>; 7] =
        [&id, &answer.status, &answer.content_type, &answer.headers, &answer.content, &answer.timed_out, &answer.error];
    let mut attempts = 1;
    while let Err(error) = client.within(WORK, client.execute(insert, &values)).await {
        let refusal = error.downcast_ref().and_then(tokio_postgres::Error::code);
        if refusal == Some(&SqlState::QUERY_CANCELED) && attempts < ATTEMPTS {
            attempts += 1;
            continue;
        }
        tracing::warn!(id, %error, "the response to a queued HTTP request could not be stored");
        anyhow::ensure!(refusal.is_some(), "the connection was lost");
        break;
    }
    Ok(())
}

async fn send(outbound: &Outbound, http: &reqwest::Client, queued: &Queued) -> Answer {
    let failed = |error: String| Answer { error: Some(error), ..Answer::default() };
    let url = match outbound.target(&queued.url) {
        Ok(url) => url,
        Err(reason) => return failed(reason),
    };
    let Ok(method) = reqwest::Method::from_bytes(queued.method.to_uppercase().as_bytes()) else {
        return failed(format!("Unsupported request method {}", queued.method));
    };
    let mut request = http.request(method, url).timeout(queued.timeout);
    for (name, value) in queued.headers.iter().filter_map(serde_json::Value::as_object).flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        request = request.header(name, text);
    }
    if let Some(body) = &queued.body {
        request = request.body(body.clone());
    }
    let begun = Instant::now();
    match receive(request).await {
        Ok(answer) => answer,
        Err(error) if error.is_timeout() => {
            let (limit, took) = (queued.timeout.as_millis(), begun.elapsed().as_secs_f64() * 1000.0);
            let error = format!(
                "Timeout of {limit} ms reached. Total time: {took:.6} ms (DNS time: 0.000000 ms, TCP/SSL handshake time: \
                 0.000000 ms, HTTP Request/Response time: 0.000000 ms)"
            );
            Answer { timed_out: true, error: Some(error), ..Answer::default() }
        }
        Err(error) => failed(crate::db::with_causes(&error)),
    }
}

async fn receive(request: reqwest::RequestBuilder) -> Result<Answer, reqwest::Error> {
    let response = request.send().await?;
    let status = i32::from(response.status().as_u16());
    let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let content_type = response.headers().get("content-type").map(text);
    let headers: serde_json::Map<String, serde_json::Value> =
        response.headers().iter().map(|(name, value)| (name.to_string(), text(value).into())).collect();
    let mut content = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(part) = body.next().await {
        content.extend_from_slice(&part?);
        if content.len() > KEPT {
            content.truncate(KEPT);
            break;
        }
    }
    // PostgreSQL's text cannot contain a zero byte.
    let content = String::from_utf8_lossy(&content).replace('\0', "");
    Ok(Answer {
        status: Some(status),
        content_type,
        headers: Some(headers.into()),
        content: Some(content),
        timed_out: false,
        error: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: every request ended after a minute.
    #[test]
    fn a_request_has_the_time_that_it_asks_for_within_limits() {
        for (asked, seconds) in [(5_000, 5), (300_000, 300), (400_001, 400), (i32::MAX, 400), (-1, 0)] {
            assert_eq!(timeout(asked), Duration::from_secs(seconds), "{asked}");
        }
    }
}
