// A project that grew over years, for `bench start`: migrations as teams write them, made from a seed. The same seed makes the same files.

const NOUNS = [
  "account", "address", "answer", "asset", "badge", "batch", "bill", "board", "booking", "branch", "calendar", "campaign", "card", "channel",
  "check_in", "claim", "client", "comment", "contact", "contract", "coupon", "course", "credit", "delivery", "device", "draft", "email",
  "entry", "event", "export", "feature", "feed", "folder", "form", "goal", "grade", "guest", "holiday", "import_job", "incident", "inquiry",
  "invoice", "issue", "job", "label", "lead", "lesson", "license", "location", "message", "meter", "milestone", "note", "offer", "order",
  "package", "page", "payment", "payout", "permission", "photo", "plan", "policy", "post", "product", "profile_link", "project", "prompt",
  "quote", "rating", "reading", "receipt", "refund", "reminder", "report", "request", "reservation", "review", "room", "route", "rule",
  "schedule", "section", "session_log", "shift", "shipment", "signature", "slot", "sprint", "stage", "step", "store", "survey", "tag", "task",
  "template", "ticket", "timer", "token", "topic", "transfer", "vehicle", "vendor", "visit", "vote", "voucher", "warehouse", "webhook",
];
const COLUMNS = [
  ["title", "text"], ["description", "text"], ["notes", "text"], ["slug", "text"], ["email", "text"], ["phone", "text"], ["color", "text"],
  ["amount", "numeric(12,2)"], ["currency", "text default 'USD'"], ["quantity", "integer default 0"], ["position", "integer"],
  ["priority", "smallint default 0"], ["is_active", "boolean default true"], ["is_public", "boolean default false"],
  ["starts_at", "timestamptz"], ["ends_at", "timestamptz"], ["due_on", "date"], ["archived_at", "timestamptz"],
  ["settings", "jsonb default '{}'::jsonb"], ["metadata", "jsonb"], ["labels", "text[] default '{}'"], ["external_id", "text"],
  ["url", "text"], ["source", "text"], ["score", "double precision"], ["duration", "interval"],
];
const plural = (noun) => (/(s|x|ch)$/.test(noun) ? `${noun}es` : noun.replace(/([^aeiou])y$/, "$1ie") + "s");
const WORDS = ["new", "open", "active", "paused", "done", "failed", "draft", "sent", "paid", "closed"];

/** mulberry32: the same numbers in [0, 1) for the same seed. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const FIRST = `-- Who belongs to which organization, and what every table needs.
create extension if not exists pg_trgm with schema extensions;
create type public.member_role as enum ('owner', 'admin', 'member', 'guest');
create table public.profiles (
  id uuid primary key references auth.users (id) on delete cascade,
  full_name text, avatar_url text, updated_at timestamptz
);
create table public.organizations (
  id uuid primary key default gen_random_uuid(),
  name text not null check (char_length(name) between 1 and 200),
  slug text unique,
  created_at timestamptz not null default now()
);
create table public.members (
  organization_id uuid not null references public.organizations (id) on delete cascade,
  user_id uuid not null references auth.users (id) on delete cascade,
  role public.member_role not null default 'member',
  created_at timestamptz not null default now(),
  primary key (organization_id, user_id)
);
create index members_user_id_idx on public.members (user_id);
alter table public.profiles enable row level security;
alter table public.organizations enable row level security;
alter table public.members enable row level security;

create or replace function public.is_member(org uuid, lowest public.member_role default 'guest')
returns boolean language sql stable security definer set search_path = '' as $$
  select exists (
    select 1 from public.members m
    where m.organization_id = org and m.user_id = (select auth.uid()) and m.role <= lowest
  );
$$;
revoke all on function public.is_member(uuid, public.member_role) from public, anon;
grant execute on function public.is_member(uuid, public.member_role) to authenticated, service_role;

create policy "Profiles are visible to everyone." on public.profiles for select using (true);
create policy "People change their own profile." on public.profiles for update using ((select auth.uid()) = id);
create policy "Members see their organization." on public.organizations for select to authenticated using (public.is_member(id));
create policy "Members see each other." on public.members for select to authenticated using (public.is_member(organization_id));

create or replace function public.touch() returns trigger language plpgsql as $$
begin
  new.updated_at := now();
  return new;
end;
$$;
create or replace function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into public.profiles (id, full_name) values (new.id, new.raw_user_meta_data ->> 'full_name');
  return new;
end;
$$;
create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user();

create table public.activity (
  id bigint generated always as identity primary key,
  table_name text not null, action text not null, row_id text, actor uuid, at timestamptz not null default now(), change jsonb
);
alter table public.activity enable row level security;
create or replace function public.log_activity() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into public.activity (table_name, action, row_id, actor, change)
  values (tg_table_name, tg_op, coalesce(to_jsonb(new) ->> 'id', to_jsonb(old) ->> 'id'), auth.uid(), to_jsonb(new));
  return coalesce(new, old);
end;
$$;
`;

/** `count` migrations: name and text, in order. */
export function migrations(count, seed = 18) {
  const number = random(seed);
  const below = (most) => Math.floor(number() * most);
  const pick = (list) => list[below(list.length)];
  const some = (list, most) => {
    const left = [...list], taken = [];
    while (taken.length < most && left.length > 0) taken.push(...left.splice(below(left.length), 1));
    return taken;
  };
  const tables = [], functions = [], unused = some(NOUNS, NOUNS.length);
  let serial = 0;

  const newTable = () => {
    serial += 1;
    const name = unused.length > 0 ? plural(unused.pop()) : `${plural(pick(NOUNS))}_${serial}`;
    const columns = some(COLUMNS, 4 + below(8));
    const parents = some(tables, below(3)).map((parent) => parent.name);
    const lines = [
      "  id uuid primary key default gen_random_uuid()",
      "  organization_id uuid not null references public.organizations (id) on delete cascade",
      "  created_by uuid default auth.uid() references auth.users (id) on delete set null",
      ...parents.map((parent) => `  ${parent}_id uuid references public.${parent} (id) on delete cascade`),
      ...columns.map(([column, type]) => `  ${column} ${type}`),
      "  created_at timestamptz not null default now()",
      "  updated_at timestamptz not null default now()",
    ];
    const words = some(WORDS, 3 + below(4));
    let text = `-- ${name}: what the product needed in release ${serial}.\n`;
    const hasStatus = number() < 0.5;
    if (hasStatus) {
      text += `create type public.${name}_status as enum (${words.map((word) => `'${word}'`).join(", ")});\n`;
      lines.splice(3, 0, `  status public.${name}_status not null default '${words[0]}'`);
    }
    if (columns.some(([column]) => column === "amount")) lines.push("  constraint amount_is_not_negative check (amount >= 0)");
    text += `create table if not exists public.${name} (\n${lines.join(",\n")}\n);\n\n`;
    text += `create index if not exists idx_${name}_organization on public.${name} (organization_id, created_at desc);\n`;
    for (const parent of parents) text += `create index if not exists idx_${name}_${parent} on public.${name} (${parent}_id);\n`;
    if (hasStatus) text += `create index if not exists idx_${name}_status on public.${name} (status) where status <> '${words[1]}';\n`;
    if (columns.some(([column]) => column === "title")) text += `create index if not exists idx_${name}_search on public.${name} using gin (title extensions.gin_trgm_ops);\n`;
    text += `\nalter table public.${name} enable row level security;\n\n`;
    text += `create policy "Members read ${name}" on public.${name} for select to authenticated using (public.is_member(organization_id));\n`;
    text += `create policy "Members add ${name}" on public.${name} for insert to authenticated with check (public.is_member(organization_id, 'member'));\n`;
    text += `create policy "Authors change ${name}" on public.${name} for update to authenticated\n  using (created_by = (select auth.uid()) or public.is_member(organization_id, 'admin'));\n`;
    if (number() < 0.6) text += `create policy "Admins delete ${name}" on public.${name} for delete to authenticated using (public.is_member(organization_id, 'admin'));\n`;
    text += `\ncreate trigger set_updated_at before update on public.${name} for each row execute function public.touch();\n`;
    if (number() < 0.3) text += `create trigger log_${name} after insert or update or delete on public.${name} for each row execute function public.log_activity();\n`;
    if (number() < 0.4) text += `comment on table public.${name} is 'Made for release ${serial}.';\ncomment on column public.${name}.organization_id is 'Who owns the row.';\n`;
    if (number() < 0.3) text += `grant select on public.${name} to anon;\ngrant all on public.${name} to service_role;\n`;
    if (number() < 0.25) text += `alter publication supabase_realtime add table public.${name};\n`;
    tables.push({ name, columns: new Set(columns.map(([column]) => column)), hasStatus });
    return [`create_${name}`, text];
  };

  const change = () => {
    const table = pick(tables), { name } = table;
    const added = some(COLUMNS.filter(([column]) => !table.columns.has(column)), 1 + below(3));
    let text = `-- More about ${name}.\n`;
    for (const [column, type] of added) {
      table.columns.add(column);
      text += `alter table public.${name} add column if not exists ${column} ${type};\n`;
    }
    serial += 1;
    const [column] = added[0] ?? ["created_at"];
    text += `create index if not exists idx_${name}_${column}_${serial} on public.${name} (${column});\n`;
    if (added.some(([of]) => of === "quantity")) text += `update public.${name} set quantity = 0 where quantity is null;\nalter table public.${name} alter column quantity set not null;\n`;
    if (number() < 0.3) text += `alter table public.${name} add constraint checked_${serial} check (created_at <= updated_at + interval '1 day') not valid;\nalter table public.${name} validate constraint checked_${serial};\n`;
    if (number() < 0.3) text += `alter table public.${name} alter column updated_at set default timezone('utc', now());\n`;
    return [`change_${name}`, text];
  };

  const body = (name, lines) => Array.from({ length: lines }, (_, line) => `  if (select count(*) from public.${name} where organization_id = org) > ${line * 100} then
    total := total + ${line};
  end if;
`).join("");
  const newFunction = () => {
    const { name } = pick(tables);
    serial += 1;
    let text = `-- What the app calls for ${name}.\n`;
    if (number() < 0.5) {
      text += `create or replace function public.summarize_${name}_${serial}(org uuid, since timestamptz default now() - interval '30 days')
returns jsonb language plpgsql security definer set search_path = '' as $$
declare
  total integer := 0;
  result jsonb;
begin
  if not public.is_member(org) then
    raise exception 'not a member' using errcode = '42501';
  end if;
${body(name, 1 + below(12))}  select jsonb_build_object('count', count(*), 'newest', max(created_at), 'total', total) into result
  from public.${name} where organization_id = org and created_at >= since;
  return result;
end;
$$;
revoke all on function public.summarize_${name}_${serial}(uuid, timestamptz) from public, anon;
grant execute on function public.summarize_${name}_${serial}(uuid, timestamptz) to authenticated;
`;
      functions.push(`public.summarize_${name}_${serial}(uuid, timestamptz)`);
    } else {
      text += `create or replace function public.recent_${name}_${serial}(org uuid, most integer default 20)
returns setof public.${name} language sql stable set search_path = '' as $$
  select * from public.${name} t where t.organization_id = org order by t.created_at desc limit most;
$$;
grant execute on function public.recent_${name}_${serial}(uuid, integer) to anon, authenticated;
`;
      functions.push(`public.recent_${name}_${serial}(uuid, integer)`);
    }
    return [`functions_for_${name}`, text];
  };

  const policies = () => {
    let text = "-- The advisor's list: auth.uid() once per statement, not once per row.\n";
    for (const { name } of some(tables, 2 + below(4))) {
      text += `drop policy if exists "Members read ${name}" on public.${name};\n`;
      text += `create policy "Members read ${name}" on public.${name} for select to authenticated\n  using (organization_id in (select m.organization_id from public.members m where m.user_id = (select auth.uid())));\n`;
    }
    return ["tighten_policies", text];
  };

  const view = () => {
    const { name } = pick(tables);
    serial += 1;
    return [`report_on_${name}`, `create or replace view public.${name}_by_day_${serial} with (security_invoker = on) as
  select organization_id, date_trunc('day', created_at) as day, count(*) as made, count(distinct created_by) as people
  from public.${name} group by 1, 2;
grant select on public.${name}_by_day_${serial} to authenticated;
`];
  };

  const rows = () => {
    const { name } = pick(tables);
    serial += 1;
    return [`data_for_${name}`, `insert into storage.buckets (id, name, public) values ('${name}-${serial}', '${name}-${serial}', false) on conflict (id) do nothing;
create policy "Members read files ${serial}" on storage.objects for select to authenticated
  using (bucket_id = '${name}-${serial}' and public.is_member(((storage.foldername(name))[1])::uuid));
insert into public.organizations (name, slug) values ('Example ${serial}', 'example-${serial}') on conflict (slug) do nothing;
do $$
begin
  if exists (select 1 from pg_catalog.pg_tables where schemaname = 'public' and tablename = '${name}') then
    insert into public.${name} (organization_id, created_by) select id, null from public.organizations where slug = 'example-${serial}';
  end if;
end $$;
`];
  };

  const cleanUp = () => {
    const gone = functions.splice(below(functions.length), 1);
    return ["remove_unused", gone.length > 0 ? `drop function if exists ${gone[0]};\n` : "select 1;\n"];
  };

  const kinds = [[0.34, newTable], [0.58, change], [0.78, newFunction], [0.87, policies], [0.92, view], [0.97, rows], [1, cleanUp]];
  return Array.from({ length: count }, (_, place) => {
    const chance = number();
    const make = place < 3 ? newTable : kinds.find(([most]) => chance < most)[1];
    const [name, text] = place === 0 ? ["organizations", FIRST] : make();
    // One each day.
    const day = new Date(Date.UTC(2024, 0, 1 + place, 9, below(60), below(60)));
    return [`${day.toISOString().replace(/\D/g, "").slice(0, 14)}_${name}.sql`, text];
  });
}
