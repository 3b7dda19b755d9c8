/** Several tenants: seeded accounts, policies, a second schema, changes and broadcasts over realtime, and types. */
import { expect, test } from "vitest";
import { found, project } from "./started";

const here = project("tenants");
const ACME = "aaaaaaaa-0000-0000-0000-000000000001";
const BOLT = "bbbbbbbb-0000-0000-0000-000000000002";
const ada = () => here.signedIn("ada@compat.test", "seed-Password-1");

test("seeded accounts see the rows of their tenant, as many as max_rows allows", async () => {
  const client = await ada();
  const tasks = await client.from("tasks").select("title, tenants(name)", { count: "exact" }).order("id");
  expect(tasks.data).toEqual([{ title: "Acme 1", tenants: { name: "Acme" } }, { title: "Acme 2", tenants: { name: "Acme" } }]);
  expect(tasks.count).toBe(3);
  const other = await client.from("tasks").insert({ tenant: BOLT, title: "not mine" });
  expect(other.error?.code).toBe("42501");
  expect((await here.client().from("tasks").select("id")).data).toEqual([]);
});

test("a further schema is served", async () => {
  const client = await ada();
  const report = await client.schema("reports").from("open_tasks").select("name");
  expect(report.data).toEqual([{ name: "Acme" }]);
  expect((await client.schema("auth").from("users").select()).error?.code).toBe("PGRST106");
});

test("only members receive their tenant's changes and broadcasts", async () => {
  const client = await ada();
  const heard: string[] = [];
  const changes = client.channel("changes").on("postgres_changes" as never, { event: "INSERT", schema: "public", table: "tasks" }, (change: { new: { title: string } }) => {
    heard.push(change.new.title);
  });
  let ready = false;
  changes.on("system" as never, {}, (message: { status?: string }) => {
    ready ||= message.status === "ok";
  });
  changes.subscribe();
  await found("the subscription", async () => ready);
  const service = here.service();
  for (const [tenant, title] of [[BOLT, "for Bolt"], [ACME, "for Acme"]]) {
    expect((await service.from("tasks").insert({ tenant, title })).error).toBeNull();
  }
  await found("the change", async () => heard.includes("for Acme"));
  expect(heard).toEqual(["for Acme"]);
  const joined = (topic: string) =>
    new Promise<string>((done) => {
      client.channel(topic, { config: { private: true } }).subscribe((status) => done(status));
    });
  await client.realtime.setAuth();
  expect(await joined(`tenant:${ACME}`)).toBe("SUBSCRIBED");
  expect(await joined(`tenant:${BOLT}`)).toBe("CHANNEL_ERROR");
  await client.removeAllChannels();
});

test("generated types contain the tables of both schemas", async () => {
  const types = await here.command("gen", "types", "--lang", "typescript", "--local");
  for (const name of ["tasks: {", "open_tasks: {", "is_member: {"]) expect(types).toContain(name);
});
