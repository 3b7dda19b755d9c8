//! The application's policies, role by role.

use crate::support::TestApp;
use crate::support::cluster::connect;

/// Each file of `sql/tests` raises an error if a check fails, and ends with the number of its checks.
#[actix_web::test]
async fn every_role_has_exactly_the_access_that_the_policies_grant() {
    let app = TestApp::start().await;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/tests");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("sql/tests").map(|e| e.expect("entry").path()).collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    let mut checks = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("SQL");
        let answers = app.owner.simple_query(&text).await.unwrap_or_else(|error| {
            let told = error.as_db_error().map_or_else(|| error.to_string(), |db| format!("{db:?}"));
            panic!("{}: {told}", file.display())
        });
        let last = answers.iter().rev().find_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).and_then(|text| text.parse::<u32>().ok()),
            _ => None,
        });
        checks += last.unwrap_or(0);
    }
    assert!(checks > 3000, "only {checks} checks ran");
}

/// Each of two admins of the same two organizations closes the account while the other does. The rows of their memberships lie in
/// opposite orders, which was a deadlock.
#[actix_web::test]
async fn of_two_last_admins_who_leave_at_once_the_second_is_told() {
    let app = TestApp::start().await;
    let helpers = include_str!("../../../sql/tests/00_helpers.sql");
    app.owner.batch_execute(helpers).await.expect("helpers");
    let people = "select tests.cast_of_people();
        insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role, user_id, invited_at, joined_at) values
          ('y', 'admin@tests.example', 'A', 'admin', tests.id('admin')::text, now(), now()),
          ('x', 'admin_y@tests.example', 'B', 'admin', tests.id('admin_y')::text, now(), now())";
    app.owner.batch_execute(people).await.expect("two admins of two organizations");
    let holder = connect(&app.owner_url).await;
    holder.batch_execute("begin; select 1 from public.nonprofits where id = 'x' for update").await.expect("a lock");
    let mut leaving = Vec::new();
    for (place, who) in ["admin", "admin_y"].into_iter().enumerate() {
        let client = connect(&app.owner_url).await;
        leaving.push(tokio::spawn(async move {
            let close = format!(
                "begin; select tests.become('{who}'); select public.close_account('{who}@tests.example'); commit"
            );
            client
                .batch_execute(&close)
                .await
                .map_err(|error| error.as_db_error().and_then(|db| db.hint()).map(str::to_owned))
        }));
        until_waiting(&app, place as i64 + 1).await;
    }
    holder.batch_execute("rollback").await.expect("released");
    let mut outcomes = Vec::new();
    for closing in leaving {
        outcomes.push(closing.await.expect("it ends"));
    }
    assert_eq!(outcomes, [Ok(()), Err(Some("last_admin".to_owned()))]);
}

/// Waits until as many calls wait for a lock.
async fn until_waiting(app: &TestApp, calls: i64) {
    let waiting =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    crate::support::valve::until("it waits", async || {
        app.owner.query_one(waiting, &[]).await.expect("a count").get::<_, i64>(0) == calls
    })
    .await;
}

/// An organization is closed while a colleague approves a request. Both lock the organization first; the approval locked it last, which
/// was a deadlock.
#[actix_web::test]
async fn an_approval_and_the_closing_of_its_organization_wait_for_each_other() {
    let app = TestApp::start().await;
    app.owner.batch_execute(include_str!("../../../sql/tests/00_helpers.sql")).await.expect("helpers");
    let people =
        "select tests.cast_of_people(); select tests.act('admin', 'select public.set_second_approval(''x'', 1000)')";
    app.owner.batch_execute(people).await.expect("people");
    let holder = connect(&app.owner_url).await;
    let held = "begin; select 1 from public.nonprofit_settings where nonprofit_id = 'x' for update";
    holder.batch_execute(held).await.expect("a lock that an approval waits for in the middle");
    let mut calls = Vec::new();
    for (place, (who, call)) in
        [("manager", "approve_request('r-ax', 'x', 10)"), ("admin", "close_organization('x')")].into_iter().enumerate()
    {
        let client = connect(&app.owner_url).await;
        calls.push(tokio::spawn(async move {
            let all = format!("begin; select tests.become('{who}'); select public.{call}; commit");
            client.batch_execute(&all).await.map_err(|error| format!("{:?}", error.as_db_error()))
        }));
        until_waiting(&app, place as i64 + 1).await;
    }
    holder.batch_execute("rollback").await.expect("released");
    for call in calls {
        assert_eq!(call.await.expect("it ends"), Ok(()));
    }
}
