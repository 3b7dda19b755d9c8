// The fixtures of `rest.mjs` and `soak.mjs`: a schema whose policies show each user only its own rows, thirty users of
// three roles, and four kinds of requests with each user's expected answer.
import { createHmac } from "node:crypto";
import * as bench from "./cluster.mjs";

export const items = 9000;
const usersPerRole = 10;
export const roles = ["bench_a", "bench_b", "bench_c"];
const secret = "bench-secret-of-forty-characters-0123456";

/** Makes roles, tables and policies; the large table has `largeRows` rows. */
export function lay(largeRows) {
  bench.sql(`
${["anon nologin", "authenticator login noinherit"].map((role) => `do $$ begin create role ${role}; exception when duplicate_object then null; end $$;`).join(" ")}
${roles.map((role) => `create role ${role} nologin;`).join(" ")}
grant anon, ${roles.join(", ")} to authenticator;
-- pgbench prepares a query before its pipeline has set the role, so its login must be able to name the schema.
create role twin login noinherit; grant ${roles.join(", ")} to twin;
create schema bench; grant usage on schema bench to anon, twin, ${roles.join(", ")};
-- Row n belongs to user n % 30, whose role is bench_a, _b or _c: a wrong role or wrong claims see nothing.
create table bench.item (id int primary key, reader text not null, owner text not null, label text not null);
insert into bench.item select n, 'bench_' || substr('abc', 1 + n % 3, 1), 'user-' || n % 30, 'label of item ' || n
  from generate_series(0, ${items - 1}) n;
create table bench.part (id int generated always as identity primary key, item_id int not null references bench.item, name text not null);
insert into bench.part (item_id, name) select n % ${items}, 'part ' || n from generate_series(0, ${items * 10 - 1}) n;
create index on bench.part (item_id);
create table bench.entry (id bigint generated always as identity primary key, owner text not null, label text not null, amount int not null);
create table bench.big (id int primary key, name text not null, amount numeric(10,2) not null, made timestamptz not null);
insert into bench.big select n, 'a name of some length ' || n, n % 1000 + 0.5, timestamptz '2026-01-01' + n * interval '1 second'
  from generate_series(1, ${largeRows}) n;
create table bench.bulk (id int primary key, name text not null, amount int not null);
create function bench.add(a int, b int) returns int language sql immutable as 'select a + b';
alter table bench.item enable row level security; alter table bench.entry enable row level security;
${roles.map((role) => `
create policy reads on bench.item for select to ${role}
  using (reader = '${role}' and owner = current_setting('request.jwt.claims', true)::json ->> 'sub');
create policy writes on bench.entry to ${role} using (owner = current_setting('request.jwt.claims', true)::json ->> 'sub');`).join("").replaceAll(/policy (\w+) on (\S+)( for select)? to (\w+)/g, "policy $1_$4 on $2$3 to $4")}
grant all on all tables in schema bench to ${roles.join(", ")};
grant select on bench.big to anon;
vacuum analyze;`);
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
export const users = Array.from({ length: usersPerRole * roles.length }, (_, number) => {
  const role = roles[number % 3];
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ role, sub: `user-${number}`, exp: 2_000_000_000 })}`;
  return { role, sub: `user-${number}`, number, token: `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}` };
});
export const bearer = (user) => ({ Authorization: `Bearer ${user.token}`, Accept: "application/json" });
const row = (id) => `"id":${id},"reader":"${roles[id % 3]}","owner":"user-${id % 30}","label":"label of item ${id}"`;

// Item ids stride through all users; in the read, every tenth request asks for another user's row and must get none.
const asks = Array.from({ length: 1500 }, (_, turn) => ({ id: (turn * 7) % items, user: users[((turn * 7) % items) % 30], turn }));
// `aim`: fraction of the twin's rate; `aimsTwin`: the twin's rate on the machine where the aims were set.
export const works = [
  { name: "one row, JWT + row level security", aim: 0.6, aimsTwin: 44_000, variable: "id",
    requests: asks.map(({ id, user, turn }) => turn % 10 === 9
      ? { method: "GET", path: `/item?id=eq.${id + 1}`, headers: bearer(user), status: 200, expect: "[]" }
      : { method: "GET", path: `/item?id=eq.${id}`, headers: bearer(user), status: 200, expect: `[{${row(id)}}]` }) },
  { name: "one row + embed of 10 children", aim: 0.5, aimsTwin: 29_000, variable: "id",
    requests: asks.map(({ id, user }) => ({ method: "GET", path: `/item?id=eq.${id}&select=*,part(id,name)`, headers: bearer(user),
      status: 200, expect: `[{${row(id)},"part":[{` })) },
  { name: "scalar rpc", aim: 0.5, aimsTwin: 60_000, variable: "a",
    requests: asks.map(({ id, user }) => ({ method: "GET", path: `/rpc/add?a=${id}&b=2`, headers: bearer(user), status: 200, expect: `${id + 2}` })) },
  { name: "insert one row, representation", aim: 0.5, aimsTwin: 27_000,
    requests: users.map((user) => ({ method: "POST", path: "/entry",
      headers: { ...bearer(user), Prefer: "return=representation", "Content-Type": "application/json" },
      body: JSON.stringify({ owner: user.sub, label: "an entry", amount: user.number }), status: 201,
      expect: `"owner":"${user.sub}","label":"an entry","amount":${user.number}}]` })) },
];

const settings = {
  PGRST_DB_URI: bench.uri("authenticator"), PGRST_DB_SCHEMAS: "bench", PGRST_DB_ANON_ROLE: "anon", PGRST_JWT_SECRET: secret,
  PGRST_DB_POOL: String(process.env.BENCH_POOL ?? 10), PGRST_SERVER_HOST: "127.0.0.1", PGRST_SERVER_PORT: String(bench.serverPort),
};
export const poolSize = Number(settings.PGRST_DB_POOL);

/** Starts the server on a database of the cluster. */
export const start = (database, further = {}, program = bench.binary) =>
  bench.startServer("rest", { ...settings, PGRST_DB_URI: bench.uri("authenticator", database), ...further }, "/big?id=eq.1", program);
