//! Images at `/render/image`: public, authenticated and signed; their sources and permissions.

use crate::support::{Actor, Reply, TestApp, User, send};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;

const SCHEMA: &str = "
    insert into storage.buckets (id, name, public) values ('open', 'open', true), ('own', 'own', false);
    create policy own on storage.objects for all to authenticated
      using ((storage.foldername(name))[1] = auth.uid()::text) with check ((storage.foldername(name))[1] = auth.uid()::text);
";

fn picture(format: ImageFormat) -> Vec<u8> {
    let drawn = RgbImage::from_fn(200, 100, |x, y| Rgb([(x % 256) as u8, (y * 2) as u8, ((x * y) % 256) as u8]));
    let mut file = std::io::Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(drawn).write_to(&mut file, format).expect("a picture");
    file.into_inner()
}

async fn upload(actor: &Actor<'_>, path: &str, mime: &str, body: Vec<u8>) {
    let request = actor.request(Method::POST, &format!("/storage/v1/object/{path}")).header("x-upsert", "true");
    let reply = send(request.header("content-type", mime).body(body)).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

struct Shown {
    status: u16,
    mime: String,
    etag: String,
    transformations: String,
    vary: String,
    bytes: Vec<u8>,
}

impl Shown {
    async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        let header = |response: &Response, name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        Self {
            status: response.status().as_u16(),
            mime: header(&response, "content-type"),
            etag: header(&response, "etag"),
            transformations: header(&response, "x-transformations"),
            vary: header(&response, "vary"),
            bytes: response.bytes().await.expect("a body").to_vec(),
        }
    }

    fn size(&self) -> (u32, u32) {
        let picture = image::load_from_memory(&self.bytes).expect("a picture");
        (picture.width(), picture.height())
    }
}

async fn set_up(app: &TestApp) -> (User<'_>, User<'_>) {
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    for bucket in ["open", "own"] {
        upload(&alice.actor, &format!("{bucket}/{}/a b.png", alice.id), "image/png", picture(ImageFormat::Png)).await;
    }
    (alice, bob)
}

#[actix_web::test]
async fn public_images_are_resized_and_cached_by_their_sources_etag() {
    let app = TestApp::start().await;
    let (alice, _) = set_up(&app).await;
    let path = |query: &str| format!("/storage/v1/render/image/public/open/{}/a b.png?{query}", alice.id);
    let plain = |query: &str| app.plain(Method::GET, &path(query));
    let shown = Shown::of(plain("width=100&height=100")).await;
    assert_eq!((shown.status, shown.mime.as_str(), shown.size()), (200, "image/png", (100, 100)));
    assert_eq!(shown.transformations, "height:100,width:100,resizing_type:fill");
    let source =
        Shown::of(app.plain(Method::GET, &format!("/storage/v1/object/public/open/{}/a b.png", alice.id))).await;
    assert_eq!(shown.etag, source.etag);
    assert_eq!(Shown::of(plain("width=100").header("if-none-match", &source.etag)).await.status, 304);

    let webp = Shown::of(plain("width=50").header("accept", "image/avif,image/webp,*/*")).await;
    assert_eq!((webp.mime.as_str(), webp.vary.contains("Accept"), webp.size()), ("image/webp", true, (50, 25)));
    let origin = Shown::of(plain("width=50&format=origin").header("accept", "image/webp")).await;
    assert_eq!((origin.mime.as_str(), origin.vary.contains("Accept")), ("image/png", false));
    let small = Shown::of(plain("format=webp&quality=20")).await.bytes.len();
    assert!(small < Shown::of(plain("format=webp&quality=100")).await.bytes.len());

    // An image made from the old bytes is not served for the new ones.
    let other = DynamicImage::ImageRgb8(RgbImage::from_pixel(30, 60, Rgb([1, 2, 3])));
    let mut file = std::io::Cursor::new(Vec::new());
    other.write_to(&mut file, ImageFormat::Jpeg).expect("a picture");
    upload(&alice.actor, &format!("open/{}/a b.png", alice.id), "image/jpeg", file.into_inner()).await;
    let shown = Shown::of(plain("width=100&height=100")).await;
    assert_eq!((shown.mime.as_str(), shown.size()), ("image/jpeg", (30, 60)));
    let download = plain("width=10&download=me.jpg").send().await.expect("an answer");
    assert_eq!(download.headers()["content-disposition"], "attachment; filename=me.jpg; filename*=UTF-8''me.jpg");
    assert_eq!(download.headers()["x-content-type-options"], "nosniff");
}

#[actix_web::test]
async fn without_access_to_the_source_there_is_no_image() {
    let app = TestApp::start().await;
    let (alice, bob) = set_up(&app).await;
    let path = format!("/storage/v1/render/image/authenticated/own/{}/a b.png?width=20", alice.id);
    assert_eq!(Shown::of(alice.actor.request(Method::GET, &path)).await.size(), (20, 10));
    assert_eq!(bob.actor.get(&path).await.body["error"], "not_found");
    let public = app.anon().get(&path.replace("authenticated", "public")).await;
    assert_eq!((public.status, &public.body["error"]), (400, &json!("Bucket not found")));
    let nobody = send(app.plain(Method::GET, &path)).await;
    assert_eq!(nobody.body["message"], "Invalid Compact JWS");
}

#[actix_web::test]
async fn a_link_to_an_image_opens_only_that_image() {
    let app = TestApp::start().await;
    let (alice, _) = set_up(&app).await;
    let sign = format!("/storage/v1/object/sign/own/{}/a b.png", alice.id);
    let transform =
        json!({ "width": 40, "height": 40, "resize": "cover", "gravity": "fp", "x_offset": 0, "y_offset": 1 });
    let signed = alice.actor.post(&sign, json!({ "expiresIn": 60, "transform": transform })).await;
    let url = signed.body["signedURL"].as_str().expect("an address").to_owned();
    assert!(url.starts_with(&format!("/render/image/sign/own/{}/a b.png?token=", alice.id)), "{url}");
    let open = |url: &str| app.plain(Method::GET, &format!("/storage/v1{url}"));
    let shown = Shown::of(open(&url)).await;
    assert_eq!((shown.status, shown.size()), (200, (40, 40)));
    assert!(shown.transformations.contains("gravity:fp:0:1"), "{}", shown.transformations);

    // Neither the query nor another route extends it.
    assert_eq!(Shown::of(open(&format!("{url}&width=200&height=100&resize=fill"))).await.size(), (40, 40));
    for wider in [url.replace("/render/image/sign/", "/object/sign/"), url.replace("a b.png", "c.png")] {
        let refused = send(open(&wider)).await;
        assert_eq!((refused.status, &refused.body["code"]), (400, &json!("InvalidSignature")), "{wider}");
    }
    let upload = url.replace("/render/image/sign/", "/object/upload/sign/");
    let refused = send(app.plain(Method::PUT, &format!("/storage/v1{upload}")).body("x")).await;
    assert_eq!(refused.body["message"], "Token is not scoped for upload");

    // Without a transform, it stays a link to the original file.
    let plain = alice.actor.post(&sign, json!({ "expiresIn": 60, "transform": {} })).await;
    assert!(plain.body["signedURL"].as_str().expect("an address").starts_with("/object/sign/"));
    let wrong = alice.actor.post(&sign, json!({ "expiresIn": 60, "transform": { "width": -1 } })).await;
    assert_eq!(wrong.body["message"], "body/transform/width must be >= 0");
}

#[actix_web::test]
async fn invalid_and_oversized_images_get_upstreams_errors() {
    let settings = [("IMGPROXY_MAX_SRC_RESOLUTION", "0.01"), ("IMGPROXY_MAX_SRC_FILE_SIZE", "100000")];
    let app = TestApp::with_settings(&settings).await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let service = app.service();
    let heavy = [picture(ImageFormat::Png), vec![0; 100_000]].concat();
    let mut bomb = picture(ImageFormat::Png);
    bomb.truncate(500);
    for (name, body, said) in [
        ("text", b"not a picture".to_vec(), "The source image is invalid or unsupported for rendering"),
        ("large", picture(ImageFormat::Png), "The source image resolution is too large to process"),
        ("bomb", bomb, "The source image resolution is too large to process"),
        ("heavy", heavy, "The source image file is too large to process"),
        (
            "svg",
            b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(),
            "The source image is invalid or unsupported for rendering",
        ),
    ] {
        upload(&service, &format!("open/{name}"), "image/png", body).await;
        let refused: Reply =
            send(app.plain(Method::GET, &format!("/storage/v1/render/image/public/open/{name}?width=5"))).await;
        assert_eq!(
            (refused.status, &refused.body),
            (
                400,
                &json!({ "statusCode": "400", "error": "InvalidRequest", "code": "InvalidRequest", "message": said })
            ),
            "{name}"
        );
    }
    let refused = send(app.plain(Method::GET, "/storage/v1/render/image/public/open/text?quality=5")).await;
    assert_eq!(refused.body["message"], "querystring/quality must be >= 20");
    let none = send(app.plain(Method::GET, "/storage/v1/render/image/public/open/none?width=5")).await;
    assert_eq!(none.body["error"], "not_found");
}

/// As by imgproxy, which Supabase uses.
#[actix_web::test]
async fn an_image_that_is_stored_as_gzip_is_unpacked_within_the_limit() {
    let app = TestApp::with_settings(&[("IMGPROXY_MAX_SRC_FILE_SIZE", "100000")]).await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let packed = |bytes: &[u8]| {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut file, bytes).expect("packed");
        file.finish().expect("packed")
    };
    let show = async |body: Vec<u8>, coding: &str| {
        let request = app.service().request(Method::POST, "/storage/v1/object/open/a").header("x-upsert", "true");
        let request = request.header("content-type", "image/png").header("content-encoding", coding);
        assert_eq!(send(request.body(body)).await.status, 200);
        app.plain(Method::GET, "/storage/v1/render/image/public/open/a?width=50").send().await.expect("an answer")
    };
    let shown = show(packed(&picture(ImageFormat::Png)), "gzip").await;
    assert_eq!((shown.status().as_u16(), shown.headers().get("content-encoding")), (200, None));
    let shown = image::load_from_memory(&shown.bytes().await.expect("a body")).expect("a picture");
    assert_eq!((shown.width(), shown.height()), (50, 25));
    let source = "The source image is invalid or unsupported for rendering";
    for (body, coding, said) in [
        (picture(ImageFormat::Png), "gzip", source),
        (picture(ImageFormat::Png), "br", source),
        (packed(&vec![0; 200_000]), "gzip", "The source image file is too large to process"),
    ] {
        let refused = show(body, coding).await;
        assert_eq!(refused.status().as_u16(), 400, "{coding}");
        let body: serde_json::Value = serde_json::from_slice(&refused.bytes().await.expect("a body")).expect("JSON");
        assert_eq!(body["message"], said, "{coding}");
    }
}

#[actix_web::test]
async fn when_disabled_there_are_no_image_routes_and_links_are_plain() {
    let app = TestApp::with_settings(&[("ENABLE_IMAGE_TRANSFORMATION", "false")]).await;
    let (alice, _) = set_up(&app).await;
    let path = format!("/storage/v1/render/image/public/open/{}/a b.png", alice.id);
    let refused = send(app.plain(Method::GET, &path)).await;
    assert_eq!((refused.status, &refused.body["error"]), (404, &json!("Not Found")));
    let sign = format!("/storage/v1/object/sign/own/{}/a b.png", alice.id);
    let signed = alice.actor.post(&sign, json!({ "expiresIn": 60, "transform": { "width": 5 } })).await;
    assert!(signed.body["signedURL"].as_str().expect("an address").starts_with("/object/sign/"));
}

#[actix_web::test]
async fn requests_for_one_image_are_rate_limited_per_client() {
    let settings = [
        ("RATE_LIMITER_ENABLED", "true"),
        ("RATE_LIMITER_RENDER_PATH_MAX_REQ_SEC", "1"),
        ("FERROBASE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let app = TestApp::with_settings(&settings).await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    // Each request is answered at once, so that all of them are within a few seconds even on a slow machine.
    let ask = |client: &'static str, name: &'static str, number: usize| {
        let path = format!("/storage/v1/render/image/public/open/{name}?width={}", number + 1);
        send(app.plain(Method::GET, &path).header("x-forwarded-for", client))
    };
    let all = futures_util::future::join_all((0..30).map(|number| ask("192.0.2.1", "a.png", number))).await;
    let refused: Vec<&Reply> = all.iter().filter(|reply| reply.status == 429).collect();
    assert!(all.len() - refused.len() >= 4, "the first four");
    let said = json!({ "statusCode": "429", "error": "Too Many Requests", "code": "SlowDown",
        "message": "Rate limit exceeded, retry in 4 seconds" });
    assert_eq!((&refused.first().expect("too many").body, refused[0].header("retry-after")), (&said, "4"));
    for (client, name) in [("192.0.2.2", "a.png"), ("192.0.2.1", "b.png")] {
        assert_eq!(ask(client, name, 0).await.body["error"], "not_found", "{client} {name}");
    }
}

/// Twelve images of nine megapixels at once: only a few are decoded at a time.
#[actix_web::test]
async fn many_large_images_are_processed_in_turn() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let large = DynamicImage::ImageLuma8(image::GrayImage::from_pixel(3000, 3000, image::Luma([7])));
    let mut file = std::io::Cursor::new(Vec::new());
    large.write_to(&mut file, ImageFormat::Png).expect("a picture");
    upload(&app.service(), "open/large", "image/png", file.into_inner()).await;
    let one = |number: usize| {
        let path = format!("/storage/v1/render/image/public/open/large?width={}", 10 + number);
        Shown::of(app.plain(Method::GET, &path))
    };
    let all = futures_util::future::join_all((0..12).map(one)).await;
    for (number, shown) in all.iter().enumerate() {
        // A request that waited too long gets 429, and nothing else.
        assert!(matches!(shown.status, 200 | 429), "{}", shown.status);
        if shown.status == 200 {
            assert_eq!(shown.size(), (10 + number as u32, 10 + number as u32));
        }
    }
    assert!(all.iter().any(|shown| shown.status == 200));
}
