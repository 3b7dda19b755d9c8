//! Requests queued with `pg_net` and jobs of `pg_cron`.

use ferrobase::migrate::{self, GivenUrls};

use super::escalation::{GRAB, assert_plain};
use super::{Fixture, query, wait_for};

/// A server that accepts connections and answers, or stays silent.
fn target(answers: bool) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            if answers {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            } else {
                open.push(stream);
            }
        }
    });
    format!("http://{address}/")
}

#[tokio::test]
async fn queued_requests_are_not_blocked_by_hanging_or_unstorable_ones() {
    use ferrobase::jobs::{Jobs, JobsConfig, Outbound};
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    query(&db.url, "create extension pg_net; create extension pg_cron").await.expect("extensions");
    // As in databases of earlier versions, in which everybody might do this.
    query(&db.admin, "grant trigger on net._http_response to postgres").await.expect("a grant");
    query(&db.url, "create trigger grab before insert on net._http_response for each row execute function grab_row()")
        .await
        .expect("a trigger");
    query(&db.admin, "alter table net._http_response add constraint refused check (id <> 2)").await.expect("a check");
    let urls = migrate::prepare(&db.admin, ferrobase::config::DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await;
    let jobs = Jobs::start(JobsConfig {
        service_url: urls.expect("logins").service_url,
        owner_url: db.url.clone(),
        outbound: Outbound { reaches_private: true, api: "127.0.0.1:1".parse().expect("an address") },
    })
    .expect("jobs");
    let (silent, good) = (target(false), target(true));
    query(&db.url, &format!("select net.http_get('{silent}', timeout_milliseconds => 2147483647)")).await.expect("1");
    wait_for(&db, "select count(*) = 0 from net.http_request_queue").await;
    query(&db.url, &format!("select net.http_get('{good}'), net.http_get('{good}')")).await.expect("2 and 3");
    wait_for(&db, "select exists (select from net._http_response where id = 3 and status_code = 200)").await;
    assert_eq!(db.one("select count(*) from net._http_response").await, "1");
    assert_plain(&db, "a trigger on net._http_response").await;
    // A result of several rows is not collected.
    query(&db.url, "select cron.schedule('rows', '1 second', 'select generate_series(1, 1000)')").await.expect("a job");
    wait_for(&db, "select exists (select from cron.job_run_details where return_message = '1000 rows')").await;
    jobs.stop().await;
    db.stop().await;
}
