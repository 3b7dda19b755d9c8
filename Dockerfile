# Ferrobase with the web app inside: one binary on a slim system.
# Build: docker compose build        Run: docker compose up -d

FROM node:22-bookworm-slim AS web
WORKDIR /src/frontend
COPY frontend/package.json frontend/package-lock.json frontend/.npmrc ./
RUN npm ci --omit=dev --no-fund --no-audit
COPY frontend/ ./
RUN npm run build

FROM rust:1-bookworm AS server
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY server/ server/
COPY sql/ sql/
COPY --from=web /src/frontend/dist frontend/dist
RUN cargo build --release --locked --bin ferrobase --features avif

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --user-group --no-create-home ferrobase \
 && install -d -o ferrobase -g ferrobase /data /secrets
COPY --from=server /src/target/release/ferrobase /usr/local/bin/ferrobase
COPY --chmod=755 docker/make-keys.sh docker/serve.sh /usr/local/bin/
USER ferrobase
WORKDIR /data
ENV FERROBASE_LISTEN=0.0.0.0:54321 \
    FERROBASE_DATA_DIR=/data
VOLUME ["/data", "/secrets"]
EXPOSE 54321
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s CMD ["ferrobase", "healthcheck"]
CMD ["serve.sh"]
