//! Attacks by somebody who knows the API and the public key and may have an account: reading others' data, forged
//! states, repeated and concurrent requests. Each test checks the database afterwards.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Actor, Reply, TestApp, User, send};

/// Two organizations with their staff, each with an account.
struct Cast<'a> {
    admin: User<'a>,
    manager: User<'a>,
    other_admin: User<'a>,
    x: String,
    y: String,
}

async fn cast(app: &TestApp) -> Cast<'_> {
    app.owner
        .batch_execute(
            "insert into public.categories (id, name) values ('c', 'Food Assistance');
             update private.app_settings set value = '1000' where key = 'rate_limit_factor'",
        )
        .await
        .expect("settings");
    let (admin, other_admin) = (app.user("admin@test.example").await, app.user("other@test.example").await);
    let manager = app.user("manager@test.example").await;
    let (x, y) = (found(&admin).await, found(&other_admin).await);
    member(app, &x, &manager, "manager").await;
    Cast { admin, manager, other_admin, x, y }
}

async fn found(founder: &User<'_>) -> String {
    let input = json!({ "name": "Harbor", "legal_status": "charity", "registration_number": "1", "employee_count": "3", "mission": "Help" });
    let made = founder.actor.post("/rest/v1/rpc/create_organization", json!({ "input": input })).await;
    assert_eq!(made.status, 200, "{}", made.body);
    made.body["id"].as_str().expect("id").to_owned()
}

async fn member(app: &TestApp, nonprofit: &str, user: &User<'_>, role: &str) {
    let statement = "insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role, user_id, invited_at, joined_at)
         values ($1, $2, 'Colleague', $3, $4, now(), now())";
    let email = format!("{}@test.example", user.id);
    app.owner.execute(statement, &[&nonprofit, &email, &role, &user.id]).await.expect("a member");
}

fn answers(nonprofits: &[&str]) -> Value {
    json!({
        "key": uuid::Uuid::new_v4(), "category_id": "c", "nonprofits": nonprofits, "description": "We need food for two weeks.",
        "amount": "40", "contact_consent": true, "first_name": "Ada", "last_name": "Byron", "email": "ada@test.example",
        "phone": "5550100", "address": "1 Main Street", "city": "Boston", "state": "MA", "postal_code": "02101",
    })
}

async fn rpc(actor: &Actor<'_>, name: &str, arguments: Value) -> Reply {
    actor.post(&format!("/rest/v1/rpc/{name}"), arguments).await
}

async fn submit(actor: &Actor<'_>, input: &Value) -> Reply {
    rpc(actor, "submit_request", json!({ "input": input })).await
}

/// Sends a request to these organizations. Returns its id.
async fn ask(actor: &Actor<'_>, nonprofits: &[&str]) -> String {
    let sent = submit(actor, &answers(nonprofits)).await;
    assert_eq!(sent.status, 200, "{}", sent.body);
    sent.body["id"].as_str().expect("id").to_owned()
}

fn approval(request: &str, nonprofit: &str, amount: u32, accept_over_budget: bool) -> Value {
    json!({ "request_id": request, "nonprofit_id": nonprofit, "amount": amount, "accept_over_budget": accept_over_budget })
}

/// Counts the replies with this status. All others must have `hint`.
fn count(replies: &[Reply], status: u16, hint: &str) -> usize {
    for reply in replies.iter().filter(|reply| reply.status != status) {
        assert_eq!(reply.body["hint"], hint, "{} {}", reply.status, reply.body);
    }
    replies.iter().filter(|reply| reply.status == status).count()
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.owner.query_one(query, &[]).await.expect(query).get(0)
}

#[actix_web::test]
async fn one_of_two_concurrent_organizations_claims_the_request() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let ada = app.user("ada@test.example").await;
    for round in 0..6 {
        let id = ask(&ada.actor, &[&cast.x, &cast.y]).await;
        let question = json!({ "request_id": id, "nonprofit_id": cast.y, "notes": "The letter, please" });
        let replies = join_all([
            rpc(&cast.admin.actor, "approve_request", approval(&id, &cast.x, 40, true)),
            if round % 2 == 0 {
                rpc(&cast.other_admin.actor, "approve_request", approval(&id, &cast.y, 40, true))
            } else {
                rpc(&cast.other_admin.actor, "request_more_info", question)
            },
        ])
        .await;
        assert_eq!(count(&replies, 200, "request_already_decided"), 1);
    }
    assert_eq!(number(&app, "select count(*) from public.request_nonprofits where state = 'claimed'").await, 6);
    assert_eq!(number(&app, "select count(*) from public.request_nonprofits where state = 'taken'").await, 6);
    let double =
        "select count(*) from (select 1 from public.budget_transactions group by request_id having count(*) > 1) d";
    assert_eq!(number(&app, double).await, 0);
}

#[actix_web::test]
async fn one_of_several_concurrent_decisions_counts() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let ada = app.user("ada@test.example").await;
    for _ in 0..6 {
        let id = ask(&ada.actor, &[&cast.x]).await;
        // All three have opened the request, so they stay able to see its outcome.
        rpc(&cast.manager.actor, "open_request", json!({ "request_id": id, "nonprofit_id": cast.x })).await;
        let denial = json!({ "request_id": id, "nonprofit_id": cast.x, "reason": "no" });
        let replies = join_all([
            rpc(&cast.admin.actor, "approve_request", approval(&id, &cast.x, 40, true)),
            rpc(&cast.manager.actor, "deny_request", denial),
            rpc(&ada.actor, "withdraw_request", json!({ "id": id })),
        ])
        .await;
        assert_eq!(count(&replies, 200, "request_already_decided"), 1);
        let ends = "select count(*) from public.request_events where type in ('approved', 'denied', 'withdrawn') and request_id = $1";
        let told: i64 = app.owner.query_one(ends, &[&id]).await.expect("events").get(0);
        assert_eq!(told, 1, "one end on the timeline");
    }
}

#[actix_web::test]
async fn one_person_cannot_approve_twice_and_concurrent_second_approvals_count_once() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let ada = app.user("ada@test.example").await;
    let third = app.user("third@test.example").await;
    member(&app, &cast.x, &third, "manager").await;
    rpc(&cast.admin.actor, "set_second_approval", json!({ "nonprofit_id": cast.x, "above": 10 })).await;
    let id = ask(&ada.actor, &[&cast.x]).await;
    let first = || rpc(&cast.admin.actor, "approve_request", approval(&id, &cast.x, 40, true));
    let replies = join_all([first(), first(), first()]).await;
    assert_eq!(count(&replies, 200, "second_approval_by_other"), 1);
    // The owner sees neither who approved nor how much.
    let detail = rpc(&ada.actor, "request_detail", json!({ "id": id })).await;
    assert_eq!(
        (&detail.body["request"]["status"], &detail.body["request"]["amount_approved"]),
        (&json!("processing"), &Value::Null)
    );
    assert!(!detail.body.to_string().contains(&cast.admin.id));

    let replies = join_all([
        rpc(&cast.manager.actor, "approve_request", approval(&id, &cast.x, 40, true)),
        rpc(&third.actor, "approve_request", approval(&id, &cast.x, 40, true)),
    ])
    .await;
    assert_eq!(count(&replies, 200, "request_already_decided"), 1);
    assert_eq!(number(&app, "select count(*) from public.budget_transactions where type = 'Approval'").await, 1);
}

#[actix_web::test]
async fn concurrent_approvals_and_payouts_never_overspend() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let ada = app.user("ada@test.example").await;
    let gift = json!({ "nonprofit_id": cast.x, "amount": 100, "donor_name": "Somebody", "key": uuid::Uuid::new_v4() });
    let gifts = join_all((0..4).map(|_| rpc(&cast.admin.actor, "record_donation", gift.clone()))).await;
    assert_eq!(count(&gifts, 200, "none"), 4, "a repeated donation is one, and no error");
    assert_eq!(number(&app, "select count(*) from public.donations").await, 1);

    let mut requests = Vec::new();
    for _ in 0..5 {
        requests.push(ask(&ada.actor, &[&cast.x]).await);
    }
    let actors = [&cast.admin.actor, &cast.manager.actor];
    let approvals = requests.iter().zip(actors.iter().cycle());
    let replies =
        join_all(approvals.map(|(id, actor)| rpc(actor, "approve_request", approval(id, &cast.x, 40, false)))).await;
    assert_eq!(count(&replies, 200, "over_budget"), 2, "two of forty fit into a hundred");

    let granted: String = app
        .owner
        .query_one("select id from public.requests where status = 'approved' limit 1", &[])
        .await
        .expect("one")
        .get(0);
    let payout = || rpc(&cast.manager.actor, "record_payout", json!({ "request_id": granted, "amount": 15 }));
    let replies = join_all((0..5).map(|_| payout())).await;
    assert_eq!(count(&replies, 200, "payout_exceeds_grant"), 2, "two of fifteen fit into forty");

    let pledge =
        json!({ "nonprofit_id": cast.x, "amount": "25", "email": "giver@test.example", "key": uuid::Uuid::new_v4() });
    let pledges = join_all((0..4).map(|_| rpc(&ada.actor, "pledge_donation", json!({ "input": pledge })))).await;
    let id = pledges[0].body["donation_id"].clone();
    assert!(pledges.iter().all(|reply| reply.status == 200 && reply.body["donation_id"] == id));
    let receive = |actor| rpc(actor, "receive_donation", json!({ "donation_id": id }));
    let replies =
        join_all([receive(&cast.admin.actor), receive(&cast.manager.actor), receive(&cast.admin.actor)]).await;
    assert_eq!(count(&replies, 200, "donation_already_decided"), 1);
    assert_eq!(
        number(&app, "select sum(amount)::bigint from public.budget_transactions where type = 'Donation'").await,
        125
    );
}

#[actix_web::test]
async fn a_replayed_submission_creates_one_request_and_reveals_nothing() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let (ada, bob) = (app.user("ada@test.example").await, app.user("bob@test.example").await);
    let input = answers(&[&cast.x]);
    let replies = join_all((0..6).map(|_| submit(&ada.actor, &input))).await;
    let first = &replies[0].body["request_number"];
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.body["request_number"] == *first), "{replies:?}");
    assert_eq!(replies.iter().filter(|reply| reply.body["repeated"] == json!(false)).count(), 1);
    assert_eq!(number(&app, "select count(*) from public.requests").await, 1);
    assert_eq!(
        number(
            &app,
            "select count(*) from _supavisor.outbox where recipient = 'ada@test.example' and subject like 'REQ-%'"
        )
        .await,
        1
    );

    let foreign = submit(&bob.actor, &input).await;
    assert_eq!((foreign.status, &foreign.body["hint"]), (404, &json!("request_not_found")));
    // A draft is submitted once, however many keys are used.
    let draft = rpc(&ada.actor, "save_draft", json!({ "input": { "description": "half" } })).await.body["id"].clone();
    let tries = (0..4).map(|_| {
        let mut input = answers(&[&cast.x]);
        input["draft_id"] = draft.clone();
        let ada = &ada.actor;
        async move { submit(ada, &input).await }
    });
    assert_eq!(count(&join_all(tries).await, 200, "request_already_decided"), 1);
    let mut stolen = answers(&[&cast.x]);
    stolen["draft_id"] = rpc(&ada.actor, "save_draft", json!({ "input": {} })).await.body["id"].clone();
    assert_eq!(submit(&bob.actor, &stolen).await.status, 404);
}

#[actix_web::test]
async fn states_rows_and_roles_cannot_be_forged_through_the_table_api() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let (ada, bob) = (app.user("ada@test.example").await, app.user("bob@test.example").await);
    let id = ask(&ada.actor, &[&cast.x]).await;
    let draft = rpc(&ada.actor, "save_draft", json!({ "input": { "category_id": "c" } })).await.body["id"].clone();
    let draft = draft.as_str().expect("draft");

    // Nobody may write a submitted request, and a draft stays a draft.
    for actor in [&ada.actor, &bob.actor, &cast.admin.actor, &cast.manager.actor, &cast.other_admin.actor] {
        for change in [
            json!({ "status": "approved" }),
            json!({ "amount_approved": 9000 }),
            json!({ "user_id": bob.id }),
            json!({ "status": "draft" }),
        ] {
            let reply = send(
                actor
                    .request(Method::PATCH, &format!("/rest/v1/requests?id=eq.{id}"))
                    .header("prefer", "return=representation")
                    .json(&change),
            )
            .await;
            assert_eq!((reply.status, &reply.body), (200, &json!([])), "{change}");
        }
        let gone = send(
            actor
                .request(Method::DELETE, &format!("/rest/v1/requests?id=eq.{id}"))
                .header("prefer", "return=representation"),
        )
        .await;
        assert_eq!(gone.body, json!([]));
    }
    let jump = ada.actor.patch(&format!("/rest/v1/requests?id=eq.{draft}"), json!({ "status": "pending" })).await;
    assert_eq!((jump.status, &jump.body["hint"]), (403, &json!("use_submit_request")));
    let born = ada
        .actor
        .post("/rest/v1/requests", json!({ "user_id": ada.id, "status": "approved", "amount_approved": 5 }))
        .await;
    assert_eq!((born.status, &born.body["hint"]), (403, &json!("use_submit_request")));
    let forged = json!({ "category": "Anything at all", "request_number": "REQ-001", "claimed_by": cast.x, "submit_key": uuid::Uuid::new_v4(), "needs_more_proof": true, "pending_notes": "x" });
    assert_eq!(ada.actor.patch(&format!("/rest/v1/requests?id=eq.{draft}"), forged).await.status, 204);
    let kept = app
        .owner
        .query_one("select category, num_nulls(request_number, claimed_by, submit_key, pending_notes) from public.requests where id = $1", &[&draft])
        .await
        .expect("draft");
    assert_eq!((kept.get::<_, String>(0).as_str(), kept.get::<_, i32>(1)), ("Food Assistance", 4));
    // An upsert of another user's row.
    let upsert = |actor: &Actor<'_>, row: Value| {
        actor
            .request(Method::POST, "/rest/v1/requests?on_conflict=id")
            .header("prefer", "resolution=merge-duplicates")
            .json(&row)
    };
    assert_eq!(
        send(upsert(&bob.actor, json!({ "id": draft, "user_id": bob.id, "description": "mine" }))).await.status,
        403
    );

    for (actor, path, row) in [
        (&ada.actor, "request_nonprofits", json!({ "request_id": id, "nonprofit_id": cast.y, "state": "open" })),
        (&ada.actor, "request_events", json!({ "request_id": id, "type": "approved", "actor": "system" })),
        (&cast.admin.actor, "budget_transactions", json!({ "nonprofit_id": cast.x, "type": "Donation", "amount": 1 })),
        (&cast.admin.actor, "donations", json!({ "nonprofit_id": cast.x, "amount": 1, "status": "received" })),
        (&bob.actor, "notifications", json!({ "user_id": ada.id, "title": "t", "message": "m" })),
        (
            &bob.actor,
            "nonprofit_team_members",
            json!({ "nonprofit_id": cast.x, "email": "b@test.example", "full_name": "B", "role": "admin", "user_id": bob.id }),
        ),
        (
            &cast.manager.actor,
            "nonprofit_team_members",
            json!({ "nonprofit_id": cast.x, "email": "b@test.example", "full_name": "B", "role": "admin" }),
        ),
        (&cast.other_admin.actor, "categories", json!({ "nonprofit_id": cast.x, "name": "Ours" })),
    ] {
        let reply = actor.post(&format!("/rest/v1/{path}"), row).await;
        assert_eq!((reply.status, &reply.body["code"]), (403, &json!("42501")), "{path}: {}", reply.body);
    }
    // Calling oneself an admin opens pages, but grants nothing.
    let role = json!({ "user_id": bob.id, "role": "nonprofit", "nonprofit_role": "admin" });
    let crowned = send(
        bob.actor
            .request(Method::POST, "/rest/v1/user_roles?on_conflict=user_id")
            .header("prefer", "resolution=merge-duplicates")
            .json(&role),
    )
    .await;
    assert_eq!(crowned.status, 200, "{}", crowned.body);
    let refused = rpc(&bob.actor, "approve_request", approval(&id, &cast.x, 40, true)).await;
    assert_eq!((refused.status, &refused.body["hint"]), (403, &json!("not_a_member")));
    let foreign = rpc(&cast.other_admin.actor, "approve_request", approval(&id, &cast.y, 40, true)).await;
    assert_eq!((foreign.status, &foreign.body["hint"]), (404, &json!("request_not_found")));
}

/// One more of each is allowed, and many are requested at the same moment.
#[actix_web::test]
async fn concurrent_drafts_and_uploads_stay_within_the_limit() {
    let app = TestApp::start().await;
    let ada = app.user("ada@test.example").await;
    let draft = uuid::Uuid::new_v4();
    let fill = format!(
        "insert into public.requests (id, user_id) select x, '{}'
         from (select '{draft}' union all select gen_random_uuid()::text from generate_series(1, 48)) y (x);
         insert into storage.objects (bucket_id, name)
         select 'request-documents', '{draft}/' || n from generate_series(1, 29) n",
        ada.id
    );
    app.owner.batch_execute(&fill).await.expect("49 drafts, one with 29 files");
    let drafts = (0..6).map(|_| ada.actor.post("/rest/v1/requests", json!({ "user_id": ada.id })));
    let drafts = join_all(drafts).await;
    assert_eq!(count(&drafts, 201, "too_many_drafts"), 1);
    let pair = |name: &str, value: &str| format!("{name} {}", STANDARD.encode(value));
    let begins = (0..6).map(|number| {
        let metadata = [
            pair("bucketName", "request-documents"),
            pair("objectName", &format!("{draft}/new-{number}.pdf")),
            pair("contentType", "application/pdf"),
        ];
        let begin = ada.actor.request(Method::POST, "/storage/v1/upload/resumable").header("tus-resumable", "1.0.0");
        send(begin.header("upload-length", 10 << 20).header("upload-metadata", metadata.join(",")))
    });
    let begun = join_all(begins).await;
    let with = |status: u16| begun.iter().filter(|reply| reply.status == status).count();
    assert_eq!((with(201), with(409)), (1, 5), "{begun:?}");
    let promised = "select sum(bytes)::bigint from ferrobase.uploads_under_way";
    assert_eq!(number(&app, promised).await, 10 << 20);
}

#[actix_web::test]
async fn rows_of_others_are_hidden_from_every_query() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let (ada, bob) = (app.user("ada@test.example").await, app.user("bob@test.example").await);
    let id = ask(&ada.actor, &[&cast.x]).await;
    for path in [
        format!("requests?id=eq.{id}"),
        "requests?select=id,request_nonprofits(state),request_documents(id),request_events(id)".to_owned(),
        "requests?or=(user_id.not.is.null,user_id.is.null)".to_owned(),
        format!("request_nonprofits?select=request_id,requests(email)&request_id=eq.{id}"),
        format!("request_events?select=id,note&request_id=eq.{id}"),
        "my_requests?select=*".to_owned(),
        "incoming_requests?select=*".to_owned(),
        format!("incoming_requests?nonprofit_id=eq.{}", cast.x),
        format!("profiles?id=eq.{}", ada.id),
        format!("notifications?user_id=eq.{}", ada.id),
        format!("nonprofit_team_members?nonprofit_id=eq.{}", cast.x),
        format!("nonprofit_settings?nonprofit_id=eq.{}", cast.x),
        "budget_transactions?select=*".to_owned(),
    ] {
        let reply = bob.actor.get(&format!("/rest/v1/{path}")).await;
        assert_eq!((reply.status, &reply.body), (200, &json!([])), "{path}");
    }
    // Of other organizations, people can read what the directory shows, and embedding leads no further.
    assert_eq!(bob.actor.get(&format!("/rest/v1/nonprofits?select=*&id=eq.{}", cast.x)).await.body, json!([]));
    let listed = bob.actor.get(&format!("/rest/v1/nonprofit_directory?select=id,nonprofit_team_members(email),nonprofit_settings(second_approval_above)&id=eq.{}", cast.x)).await;
    assert_eq!(listed.body, json!([{ "id": cast.x, "nonprofit_team_members": [], "nonprofit_settings": null }]));
    // Staff read the request through a function, not its row.
    assert_eq!(cast.admin.actor.get(&format!("/rest/v1/requests?id=eq.{id}")).await.body, json!([]));
    let opened = rpc(&cast.admin.actor, "open_request", json!({ "request_id": id, "nonprofit_id": cast.x })).await;
    assert_eq!(opened.body["request"]["email"], "ada@test.example");
    assert!(!opened.body.to_string().contains(&ada.id), "staff have no use for the account's id");
    for column in ["admin_user_id", "registration_number", "*"] {
        let reply = app.anon().get(&format!("/rest/v1/nonprofits?select={column}")).await;
        assert_eq!((reply.status, &reply.body["code"]), (401, &json!("42501")), "{column}");
    }
    let directory = "/rest/v1/nonprofit_directory?select=id,name,mission,description,email,phone,website,location,category,average_response_time_days,logo_path,categories(id,name,description)&order=name";
    assert_eq!(app.anon().get(directory).await.body.as_array().map(Vec::len), Some(2));
    for schema in ["private", "auth", "storage", "ferrobase", "_supavisor"] {
        let reply =
            send(bob.actor.request(Method::GET, "/rest/v1/app_settings").header("accept-profile", schema)).await;
        assert_eq!((reply.status, &reply.body["code"]), (406, &json!("PGRST106")), "{schema}");
    }
}

#[actix_web::test]
async fn an_invitation_works_once_and_only_for_its_address() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let (bob, eve) = (app.user("bob@test.example").await, app.user("eve@test.example").await);
    app.owner
        .execute("update private.account_addresses set proved_at = now() where email = 'admin@test.example'", &[])
        .await
        .expect("proved");
    let row = json!({ "nonprofit_id": cast.x, "email": "bob@test.example", "full_name": "Bob", "role": "employee" });
    assert_eq!(cast.admin.actor.post("/rest/v1/nonprofit_team_members", row).await.status, 201);
    let mail: String = app
        .owner
        .query_one(
            "select body_text from _supavisor.outbox where recipient = 'bob@test.example' and subject like 'Join%'",
            &[],
        )
        .await
        .expect("an invitation")
        .get(0);
    let token =
        mail.split("token=").nth(1).expect("a token").chars().take_while(char::is_ascii_hexdigit).collect::<String>();
    let accept = |actor| rpc(actor, "accept_team_invitation", json!({ "token": token }));
    assert_eq!(accept(&eve.actor).await.body["hint"], "invitation_foreign");
    let replies = join_all([accept(&bob.actor), accept(&bob.actor), accept(&bob.actor)]).await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.body["role"] == "employee"), "{replies:?}");
    let seats = format!("select count(*) from public.nonprofit_team_members where user_id = '{}'", bob.id);
    assert_eq!(number(&app, &seats).await, 1);
    assert_eq!(accept(&eve.actor).await.body["hint"], "invitation_foreign");
}

#[actix_web::test]
async fn only_the_proved_address_can_claim_a_guests_request() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let mut input = answers(&[&cast.x]);
    input["email"] = json!("victim@test.example");
    assert_eq!(submit(&app.anon(), &input).await.status, 200);
    // Autoconfirm lets anybody sign up with the address, which proves nothing.
    let eve = app.user("victim@test.example").await;
    let claimed = rpc(&eve.actor, "claim_guest_requests", json!({})).await;
    assert_eq!(claimed.body, json!({ "proved": false, "claimed_requests": 0, "claimed_donations": 0 }));
    // A proved address claims the requests of that address.
    let bob = app.user("bob@test.example").await;
    app.owner
        .execute("update private.account_addresses set proved_at = now() where email = 'bob@test.example'", &[])
        .await
        .expect("proved");
    assert_eq!(rpc(&bob.actor, "claim_guest_requests", json!({})).await.body["claimed_requests"], 0);
    assert_eq!(number(&app, "select count(*) from public.requests where user_id is not null").await, 0);
    // The mailed code works on the network that requested it.
    rpc(&eve.actor, "send_address_code", json!({})).await;
    let subject: String = app
        .owner
        .query_one("select subject from _supavisor.outbox where recipient = 'victim@test.example' and subject like '%code' order by id desc limit 1", &[])
        .await
        .expect("a code")
        .get(0);
    let code = subject.split(' ').next().expect("code");
    let proved = rpc(&eve.actor, "check_address_code", json!({ "email": "victim@test.example", "code": code })).await;
    assert_eq!((&proved.body["ok"], &proved.body["claimed_requests"]), (&json!(true), &json!(1)));
}

#[actix_web::test]
async fn a_closed_organization_keeps_no_requests() {
    let app = TestApp::start().await;
    let cast = cast(&app).await;
    let ada = app.user("ada@test.example").await;
    let close = rpc(&cast.other_admin.actor, "close_organization", json!({ "nonprofit_id": cast.y }));
    let sends = join_all((0..8).map(|_| async { submit(&ada.actor, &answers(&[&cast.y])).await }));
    let (closed, sent) = futures_util::future::join(close, sends).await;
    assert_eq!(closed.status, 200, "{}", closed.body);
    count(&sent, 200, "validation_failed");
    assert_eq!(number(&app, "select count(*) from public.requests where status = 'pending'").await, 0);
    assert_eq!(number(&app, "select count(*) from public.request_nonprofits where state = 'open'").await, 0);
}
