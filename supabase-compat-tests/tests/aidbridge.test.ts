/** Every call that the product's specification lists (sections 3 and 7), under its names and with its payloads. */
import { afterAll, describe, expect, it } from "vitest";
import { environment } from "./environment.js";
import { PASSWORD, anon, client, freshEmail, project, signedUp } from "./project.js";

const made: string[] = [];
const sent: string[] = [];

// An organization stays when the person who made it goes.
afterAll(async () => {
  // Elsewhere than on AidBridge's server, where all is skipped, these tables are not there.
  if (!environment.serviceKey || made.length + sent.length === 0) return;
  const admin = client(environment.serviceKey);
  await admin.from("requests").delete().in("id", sent).throwOnError();
  await admin.from("nonprofits").delete().in("id", made).throwOnError();
});

async function organization(name = "Ada's Kitchen") {
  const account = await signedUp("owner");
  const { supabase, user } = account;
  await supabase.from("user_roles").upsert({ user_id: user.id, role: "nonprofit", nonprofit_role: "admin" }, { onConflict: "user_id" });
  const created = await supabase
    .from("nonprofits")
    .insert({ name, legal_status: "501(c)(3)", registration_number: "12-3456789", employee_count: 4, mission: "Meals", admin_user_id: user.id })
    .select()
    .single();
  if (created.error) throw created.error;
  made.push(created.data.id as string);
  return { ...account, nonprofit: created.data as { id: string; name: string } };
}

describe("authentication calls", () => {
  it("sign up with a role, read the session, update the profile, log out", async () => {
    const supabase = anon();
    const email = freshEmail();
    const signUp = await supabase.auth.signUp({ email, password: PASSWORD, options: { data: { full_name: "Ada", role: "nonprofit" } } });
    expect(signUp.error).toBeNull();
    const role = await supabase.from("user_roles").select("role, nonprofit_role").eq("user_id", signUp.data.user?.id).maybeSingle();
    expect(role.data).toMatchObject({ role: "nonprofit", nonprofit_role: "admin" });
    const updated = await supabase.auth.updateUser({ data: { full_name: "Ada L.", phone: "+15550100" } });
    expect(updated.data.user?.user_metadata).toMatchObject({ full_name: "Ada L.", phone: "+15550100" });
    const reset = await supabase.auth.resetPasswordForEmail(email, { redirectTo: `${project.url}/reset-password` });
    expect(reset.error).toBeNull();
    expect((await supabase.auth.signOut()).error).toBeNull();
  });

  it("cannot grant itself a role other than requester or nonprofit", async () => {
    const supabase = anon();
    const { data } = await supabase.auth.signUp({ email: freshEmail(), password: PASSWORD, options: { data: { role: "service_role" } } });
    const role = await supabase.from("user_roles").select("role").eq("user_id", data.user?.id).single();
    expect(role.data).toEqual({ role: "requester" });
  });
});

describe("data store calls", () => {
  it("user_roles: select, insert refused twice, upsert", async () => {
    const { supabase, user } = await signedUp();
    const upserted = await supabase.from("user_roles").upsert({ user_id: user.id, role: "donor", nonprofit_role: null }, { onConflict: "user_id" }).select();
    expect(upserted.data).toMatchObject([{ user_id: user.id, role: "donor" }]);
    const other = await signedUp();
    const foreign = await other.supabase.from("user_roles").upsert({ user_id: user.id, role: "nonprofit", nonprofit_role: "admin" }, { onConflict: "user_id" });
    expect(foreign.error).toBeTruthy();
    expect((await other.supabase.from("user_roles").select().eq("user_id", user.id).maybeSingle()).data).toBeNull();
  });

  it("nonprofits: insert returns the row, select by admin_user_id", async () => {
    const { supabase, user, nonprofit } = await organization();
    const mine = await supabase.from("nonprofits").select().eq("admin_user_id", user.id).single();
    expect(mine.data).toMatchObject({ id: nonprofit.id, name: "Ada's Kitchen", employee_count: 4 });
    const second = await supabase.from("nonprofits")
      .insert({ name: "Second", legal_status: "x", registration_number: "1", employee_count: 1, mission: "x", admin_user_id: user.id });
    expect(second.error).toMatchObject({ code: "23505" });
  });

  it("nonprofit_team_members: insert with a pending user, select by nonprofit_id", async () => {
    const { supabase, nonprofit } = await organization();
    const added = await supabase.from("nonprofit_team_members").insert({
      nonprofit_id: nonprofit.id, email: freshEmail("member"), full_name: "Joan", role: "employee", user_id: "pending", created_at: new Date().toISOString(),
    });
    expect(added.error).toBeNull();
    const team = await supabase.from("nonprofit_team_members").select().eq("nonprofit_id", nonprofit.id);
    expect(team.data?.map((member) => [member.full_name, member.role, member.user_id])).toContainEqual(["Joan", "employee", "pending"]);
    const stranger = await signedUp();
    expect((await stranger.supabase.from("nonprofit_team_members").select().eq("nonprofit_id", nonprofit.id)).data).toEqual([]);
  });

  it("categories: insert returns it, select by nonprofit_id, delete by id", async () => {
    const { supabase, nonprofit } = await organization();
    const added = await supabase.from("categories").insert({ name: "Meals", description: "Warm", nonprofit_id: nonprofit.id }).select().single();
    expect(added.data).toMatchObject({ name: "Meals", nonprofit_id: nonprofit.id });
    expect((await supabase.from("categories").select().eq("nonprofit_id", nonprofit.id)).data).toHaveLength(1);
    const stranger = await signedUp();
    expect((await stranger.supabase.from("categories").delete().eq("id", added.data.id).select()).data).toEqual([]);
    expect((await supabase.from("categories").delete().eq("id", added.data.id)).error).toBeNull();
    expect((await supabase.from("categories").select().eq("nonprofit_id", nonprofit.id)).data).toEqual([]);
  });

  it("requests: drafts with their category's name, newest first, deleted by id", async () => {
    const { supabase, user } = await signedUp();
    const categories = await anon().functions.invoke("get-categories", { body: {} });
    const [first] = categories.data.categories as { id: string; name: string }[];
    const saved = await supabase.rpc("save_draft", { input: { category_id: first?.id, description: "Rent for May" } });
    expect(saved.error).toBeNull();
    const drafts = await supabase
      .from("requests")
      .select("id, description, category_id, amount, created_at, updated_at, request_number, status, title, categories(name)")
      .eq("user_id", user.id)
      .eq("status", "draft")
      .order("updated_at", { ascending: false });
    expect(drafts.data).toMatchObject([{ description: "Rent for May", status: "draft", categories: { name: first?.name } }]);
    const id = drafts.data?.[0]?.id as string;
    const stranger = await signedUp();
    expect((await stranger.supabase.from("requests").delete().eq("id", id).select()).data).toEqual([]);
    expect((await supabase.from("requests").delete().eq("id", id)).error).toBeNull();
  });

  it("a request submitted repeatedly is stored once and visible only to those involved", async () => {
    const helper = await organization("Harbor Help");
    const { supabase } = await signedUp();
    const categories = await anon().functions.invoke("get-categories", { body: {} });
    const input = {
      key: crypto.randomUUID(), category_id: categories.data.categories[0].id, nonprofits: [helper.nonprofit.id],
      description: "We need help with the rent for May.", amount: "250", contact_consent: true, first_name: "Ada", last_name: "Byron",
      email: freshEmail(), phone: "5550100", address: "1 Main Street", city: "Boston", state: "MA", postal_code: "02101",
    };
    const first = await supabase.rpc("submit_request", { input });
    expect(first.error).toBeNull();
    sent.push(first.data.id as string);
    expect(first.data.request_number).toMatch(/^REQ-\d{3,}$/);
    const again = await supabase.rpc("submit_request", { input });
    expect(again.data).toMatchObject({ id: first.data.id, request_number: first.data.request_number, repeated: true });
    const four = await supabase.rpc("submit_request", { input: { ...input, key: crypto.randomUUID(), nonprofits: ["np-001", "np-002", "np-003", "np-004"] } });
    expect(four.error).toMatchObject({ hint: "too_many_nonprofits" });
    const short = await supabase.rpc("submit_request", { input: { ...input, key: crypto.randomUUID(), description: "" } });
    expect(short).toMatchObject({ status: 422, error: { hint: "validation_failed" } });
    const stranger = await signedUp();
    expect((await stranger.supabase.rpc("request_detail", { id: first.data.id })).error).toMatchObject({ hint: "request_not_found" });
    const approved = await helper.supabase.rpc("approve_request", { request_id: first.data.id, nonprofit_id: helper.nonprofit.id, amount: 250, accept_over_budget: true });
    expect(approved.data).toMatchObject({ status: "approved" });
    const late = await helper.supabase.rpc("deny_request", { request_id: first.data.id, nonprofit_id: helper.nonprofit.id, reason: "too late" });
    expect(late).toMatchObject({ status: 409, error: { hint: "request_already_decided" } });
  });
});
