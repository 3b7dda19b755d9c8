# Recipes of Ferrobase and AidBridge; `just --list` explains each.
# Whoever has no `just`: `npx -y rust-just <recipe>`.

set shell := ["bash", "-eu", "-o", "pipefail", "-c"]

export CARGO_TERM_PROGRESS_WHEN := "never"

# List the recipes
default:
    @just --list

# Build what is missing, then run everything: PostgreSQL, migrations, demo data, API, web app, inbox
up: build
    FERROBASE_DEV=true exec target/release/ferrobase serve

# Install the pinned PostgreSQL binaries and the web app's packages
setup:
    tools/install.sh postgres
    tools/install.sh frontend

# Make target/release/ferrobase with the web app inside
build: setup
    tools/build-web.sh
    cargo build --release --locked --bin ferrobase

# Every test: Rust unit and API, supabase-js contract, web unit, browser journeys
test *ARGS:
    tools/test.sh {{ARGS}}

# Format, lint and type checks
check: setup
    cargo fmt --check
    cargo clippy --locked --all-targets -- -D warnings
    cd frontend && npm run check

# Delete the development database; the next `just up` makes it anew
db-reset:
    rm -rf .ferrobase/db

# Take the pictures of docs/screens anew, from a server with the demo data of its own
screens: setup
    tools/build-web.sh
    cargo build --locked --bin ferrobase
    CHROMIUM_PATH=$(tools/chromium.sh) tools/with-server.sh node frontend/scripts/screens.mjs

# Measure Largest Contentful Paint on a slow phone, e.g. `just lcp --write docs/reports/lcp.md` (on a quiet machine)
lcp *ARGS: setup
    tools/build-web.sh
    cargo build --locked --bin ferrobase
    CHROMIUM_PATH=$(tools/chromium.sh) tools/with-server.sh node frontend/scripts/lcp.mjs {{ARGS}}

# Write frontend/src/types/database.ts anew from the schema
types:
    tools/install.sh postgres
    cargo build --locked --bin ferrobase
    tools/with-server.sh sh -c 'target/debug/ferrobase types typescript --schema public > target/database.ts'
    mv target/database.ts frontend/src/types/database.ts

# The policy oracle in full: 10,000 random policies, claims and requests, each asked of PostgreSQL itself too
policies: setup
    POLICY_CASES=10000 cargo test -p ferrobase --test rest policies -- --nocapture

# Take the role switch out of a copy of the server and see the policy oracle fail on it
mutants-role: setup
    tools/mutants-role.sh

# Fuzz the grammar of requests and the path to the role, each for some seconds (needs a nightly toolchain), e.g. `just fuzz 300`
fuzz SECONDS="60" *TARGETS:
    tools/fuzz.sh {{SECONDS}} {{TARGETS}}

# Random requests in number: 20,000 valid ones and as many that mean nothing
random: setup
    RANDOM_CASES=20000 cargo test -p ferrobase --test rest random -- --nocapture

# Measure `rest` or `auth` beside its limit on a quiet machine (needs psql and pgbench), e.g. `just bench rest --write docs/reports/bench-rest.md`
bench API *ARGS:
    @command -v psql >/dev/null && command -v pgbench >/dev/null || { echo "bench: psql and pgbench must be on PATH (Debian: apt-get install postgresql-contrib)" >&2; exit 1; }
    cargo build --release --locked --bin ferrobase --example load
    node tools/bench/{{API}}.mjs {{ARGS}}

# Load `rest` with everything at once for so many minutes, e.g. `just soak 60 --write docs/reports/soak-rest.md` (needs psql and pgbench)
soak MINUTES="60" *ARGS:
    cargo build --release --locked --bin ferrobase --example load
    node tools/bench/soak.mjs --minutes {{MINUTES}} {{ARGS}}
