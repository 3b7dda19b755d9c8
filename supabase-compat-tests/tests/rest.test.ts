import { beforeAll, describe, expect, inject, it } from "vitest";
import { anon, project, run, service, signedUp } from "./project.js";

const authors = () => anon().from("compat_authors");

beforeAll(async () => {
  // Where the schema is missing, every test says so.
  if (!inject("missing").schema) await anon().rpc("compat_fill", { run }).throwOnError();
});

describe("reading", () => {
  it("filters, orders and limits", async () => {
    const { data } = await authors().select("name").eq("run", run).gte("born", "1880-01-01").order("born", { ascending: false }).limit(1);
    expect(data).toEqual([{ name: "Borges" }]);
  });

  it.each([
    ["in with a comma inside", () => authors().select("name").eq("run", run).in("name", ["Čapek, Karel", "x"]), ["Čapek, Karel"]],
    ["contains on an array", () => authors().select("name").eq("run", run).contains("tags", ["math"]), ["Ada"]],
    ["overlaps on an array", () => authors().select("name").eq("run", run).overlaps("tags", ["fiction", "x"]), ["Borges"]],
    ["contains on json", () => authors().select("name").eq("run", run).contains("details", { city: "London" }), ["Ada"]],
    ["ilike", () => authors().select("name").eq("run", run).ilike("name", "%ORG%"), ["Borges"]],
    ["is", () => authors().select("name").eq("run", run).is("active", false), ["Čapek, Karel"]],
    ["null rating", () => authors().select("name").eq("run", run).is("rating", null), ["Čapek, Karel"]],
    ["not", () => authors().select("name").eq("run", run).not("name", "in", '("Ada","Borges")'), ["Čapek, Karel"]],
    ["or with and", () => authors().select("name").eq("run", run).or("name.eq.Ada,and(active.is.false,born.lt.1891-01-01)").order("name"), ["Ada", "Čapek, Karel"]],
    ["a json path", () => authors().select("name").eq("run", run).eq("details->>city", "London"), ["Ada"]],
    ["a json number", () => authors().select("name").eq("run", run).gt("details->kids", 2), ["Ada"]],
  ])("%s", async (_name, query, names) => {
    const { data, error } = await query();
    expect(error).toBeNull();
    expect(data?.map((row) => row.name)).toEqual(names);
  });

  it("embeds children and parents", async () => {
    const parents = await authors().select("name, compat_books(title)").eq("run", run).eq("name", "Borges")
      .order("title", { referencedTable: "compat_books" });
    expect(parents.data).toEqual([{ name: "Borges", compat_books: [{ title: "El Aleph" }, { title: "Ficciones" }] }]);
    const children = await anon().from("compat_books").select("title, author:compat_authors!inner(name)").eq("run", run).eq("author.name", "Ada");
    expect(children.data).toEqual([{ title: "Notes", author: { name: "Ada" } }]);
  });

  it("counts without rows and with them, and ranges", async () => {
    const head = await authors().select("*", { count: "exact", head: true }).eq("run", run);
    expect(head).toMatchObject({ count: 3, data: null, status: 200 });
    const page = await authors().select("name", { count: "exact" }).eq("run", run).order("name").range(0, 1);
    expect(page).toMatchObject({ count: 3, status: 206 });
    expect(page.data).toHaveLength(2);
    const children = await authors().select("name, compat_books(count)").eq("run", run).order("name").limit(1);
    expect(children.data).toEqual([{ name: "Ada", compat_books: [{ count: 1 }] }]);
  });

  it("single, maybeSingle, csv and aliases with casts", async () => {
    const one = await authors().select("who:name, stars:rating::text").eq("run", run).eq("name", "Ada").single();
    expect(one.data).toEqual({ who: "Ada", stars: "4.50" });
    const none = await authors().select().eq("run", run).eq("name", "nobody").maybeSingle();
    expect(none).toMatchObject({ data: null, error: null });
    const many = await authors().select().eq("run", run).single();
    expect(many.error).toMatchObject({ code: "PGRST116", details: "The result contains 3 rows" });
    expect(many.status).toBe(406);
    const csv = await authors().select("name,rating").eq("run", run).eq("name", "Ada").csv();
    expect(csv.data).toBe("name,rating\nAda,4.50");
  });
});

describe("writing", () => {
  it("inserts, upserts, updates and deletes with a representation", async () => {
    const admin = service();
    const inserted = await admin.from("compat_authors").insert({ run: `${run}-w`, name: "New" }).select().single();
    expect(inserted.status).toBe(201);
    expect(inserted.data).toMatchObject({ name: "New", tags: [], active: true });
    const upserted = await admin.from("compat_authors")
      .upsert({ run: `${run}-w`, name: "New", rating: 3 }, { onConflict: "run,name" }).select("rating, id");
    expect(upserted).toMatchObject({ status: 200, data: [{ rating: 3, id: inserted.data?.id }] });
    const ignored = await admin.from("compat_authors")
      .upsert({ run: `${run}-w`, name: "New", rating: 1 }, { onConflict: "run,name", ignoreDuplicates: true }).select();
    expect(ignored.data).toEqual([]);
    const updated = await admin.from("compat_authors").update({ rating: 2 }).eq("run", `${run}-w`).select("rating");
    expect(updated.data).toEqual([{ rating: 2 }]);
    const minimal = await admin.from("compat_authors").update({ rating: 1 }).eq("run", `${run}-w`);
    expect(minimal).toMatchObject({ status: 204, data: null, error: null });
    const deleted = await admin.from("compat_authors").delete({ count: "exact" }).eq("run", `${run}-w`);
    expect(deleted).toMatchObject({ status: 204, count: 1 });
  });

  it("fills missing keys of a bulk insert with null, or with defaults on request", async () => {
    const admin = service();
    const rows = [{ run: `${run}-b`, name: "A", rating: 1 }, { run: `${run}-b`, name: "B", tags: ["x"] }];
    const nulls = await admin.from("compat_authors").insert(rows);
    expect(nulls.error).toMatchObject({ code: "23502" });
    const defaults = await admin.from("compat_authors").insert(rows, { defaultToNull: false }).select("name, tags");
    expect(defaults.data).toEqual([{ name: "A", tags: [] }, { name: "B", tags: ["x"] }]);
  });

  it("returns constraint violations with the database's code", async () => {
    const admin = service();
    expect((await admin.from("compat_authors").insert({ run, name: "Ada" })).error).toMatchObject({ code: "23505" });
    const unknown = await admin.from("compat_authors").insert({ run, nme: "x" });
    expect(unknown.error).toMatchObject({ code: "PGRST204", message: "Could not find the 'nme' column of 'compat_authors' in the schema cache" });
    expect(unknown.status).toBe(400);
    expect((await admin.from("compat_nothing").select()).error).toMatchObject({ code: "PGRST205" });
  });
});

describe("row level security", () => {
  it("reads and changes only the caller's rows", async () => {
    const alice = await signedUp("alice");
    const bob = await signedUp("bob");
    const note = await alice.supabase.from("compat_notes").insert({ body: "mine" }).select().single();
    expect(note.data).toMatchObject({ owner: alice.user.id, body: "mine" });
    expect((await bob.supabase.from("compat_notes").select()).data).toEqual([]);
    const stolen = await bob.supabase.from("compat_notes").update({ body: "x" }).eq("id", note.data?.id).select();
    expect(stolen.data).toEqual([]);
    const forged = await bob.supabase.from("compat_notes").insert({ body: "x", owner: alice.user.id });
    expect(forged).toMatchObject({ status: 403, error: { code: "42501" } });
    expect((await anon().from("compat_notes").select()).data).toEqual([]);
    const nobody = await anon().from("compat_notes").insert({ body: "x", owner: alice.user.id });
    expect(nobody).toMatchObject({ status: 401, error: { code: "42501" } });
    expect((await service().from("compat_notes").select("body").eq("id", note.data?.id)).data).toEqual([{ body: "mine" }]);
  });

  it("rejects an expired or forged token before querying the database", async () => {
    const answer = await fetch(`${project.url}/rest/v1/compat_authors`, {
      headers: { apikey: project.anonKey, authorization: `Bearer ${project.anonKey.slice(0, -3)}AAA` },
    });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ code: "PGRST301" });
    expect(answer.headers.get("www-authenticate")).toContain("Bearer");
  });
});

describe("functions in the database", () => {
  it("accepts named arguments by POST and GET and knows the caller", async () => {
    expect((await anon().rpc("compat_add", { a: 2, b: 3 })).data).toBe(5);
    expect((await anon().rpc("compat_add", { a: 2 }, { get: true })).data).toBe(3);
    const { supabase, user, email } = await signedUp();
    expect((await supabase.rpc("compat_whoami")).data).toEqual({ role: "authenticated", uid: user.id, email });
    expect((await anon().rpc("compat_whoami")).data).toEqual({ role: "anon", uid: null, email: null });
  });

  it("filters a set, returns nothing for void and passes on raised errors", async () => {
    const set = await anon().rpc("compat_books_of", { author_run: run }).select("title").gt("pages", 100).order("title");
    expect(set.data).toEqual([{ title: "El Aleph" }, { title: "Ficciones" }]);
    expect(await anon().rpc("compat_touch")).toMatchObject({ status: 204, data: null, error: null });
    const refused = await anon().rpc("compat_refuse");
    expect(refused).toMatchObject({ status: 402, error: { code: "PT402", message: "Not today", details: "the detail", hint: "the hint" } });
    const unknown = await anon().rpc("compat_add", { a: 1, c: 2 });
    expect(unknown).toMatchObject({ status: 404, error: { code: "PGRST202" } });
  });
});

describe("the gateway", () => {
  it("requires a valid key", async () => {
    const none = await fetch(`${project.url}/rest/v1/compat_authors`);
    expect(none.status).toBe(401);
    expect(await none.json()).toMatchObject({ message: "No API key found in request" });
    const wrong = await fetch(`${project.url}/rest/v1/compat_authors`, { headers: { apikey: "x" } });
    expect(await wrong.json()).toMatchObject({ message: "Invalid API key" });
    const byQuery = await fetch(`${project.url}/rest/v1/compat_authors?apikey=${project.anonKey}&run=eq.${run}&select=name`);
    expect(byQuery.status).toBe(200);
    expect(await byQuery.json()).toHaveLength(3);
  });

  it("answers a browser's preflight for the headers supabase-js sends", async () => {
    for (const path of ["rest/v1/compat_authors", "auth/v1/token", "functions/v1/compat-echo"]) {
      const answer = await fetch(`${project.url}/${path}`, {
        method: "OPTIONS",
        headers: {
          origin: "http://elsewhere.test",
          "access-control-request-method": "POST",
          "access-control-request-headers": "apikey,authorization,content-type,x-client-info",
        },
      });
      expect(answer.status, path).toBeLessThan(300);
      expect(answer.headers.get("access-control-allow-origin"), path).toBe("*");
      expect(answer.headers.get("access-control-allow-headers")?.toLowerCase(), path).toContain("apikey");
    }
  });
});
