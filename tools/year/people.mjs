// What people do in `just year`, and the ledger of what was acknowledged. A request without an answer is sent again, with the same key,
// as the pages do.
import { createHash, randomUUID } from "node:crypto";
import { keys, sleep } from "./machine.mjs";

const password = "a-password-of-12";
const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");
/** How long people try before they call it an outage that somebody has to see to. */
const PATIENCE = 180_000;

export function makePeople(machine, random) {
  const ledger = { people: [], requests: new Map(), files: new Map(), donations: new Map(), payouts: new Map() };
  const counts = { tries: 0, again: {}, slowest: 0, lists: 0, logins: 0 };
  const between = (least, most) => least + Math.floor(random() * (most - least + 1));
  const bytes = (length) => {
    const made = Buffer.alloc(length);
    for (let at = 0; at < length; at += 4) made.writeUInt32LE(Math.floor(random() * 2 ** 32) >>> 0, Math.min(at, Math.max(0, length - 4)));
    made.write("%PDF-1.7\n");
    return made;
  };

  /** One request of the API until it is answered for good. `fine`: statuses that mean it is done. */
  async function ask(path, { method = "POST", token = keys.anon, from, body, headers = {}, fine = [200, 201] } = {}) {
    const begun = performance.now();
    let wait = 500;
    const isJson = body !== undefined && !Buffer.isBuffer(body);
    for (;;) {
      counts.tries += 1;
      const answer = await fetch(machine.api + path, {
        method, signal: AbortSignal.timeout(30_000), body: isJson ? JSON.stringify(body) : body,
        headers: { apikey: keys.anon, authorization: `Bearer ${token}`, ...(from ? { "x-forwarded-for": from } : {}),
          ...(isJson ? { "content-type": "application/json" } : {}), ...headers },
      }).then(async (answer) => ({ status: answer.status, text: await answer.text() })).catch((error) => ({ status: 0, text: String(error) }));
      if (fine.includes(answer.status)) {
        counts.slowest = Math.max(counts.slowest, performance.now() - begun);
        return answer.text === "" ? null : JSON.parse(answer.text);
      }
      // No answer, a server that starts, or too many at once.
      if (![0, 429, 500, 502, 503, 504].includes(answer.status)) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
      if (performance.now() - begun > PATIENCE) throw new Error(`${method} ${path} was never answered: ${answer.status} ${answer.text}`);
      counts.again[answer.status || "no answer"] = (counts.again[answer.status || "no answer"] ?? 0) + 1;
      await sleep(wait);
      wait = Math.min(10_000, wait * 2);
    }
  }
  const rpc = (name, body, token) => ask(`/rest/v1/rpc/${name}`, { body, token, fine: [200, 204] });

  async function signIn(person) {
    const session = await ask("/auth/v1/token?grant_type=password", { from: person.address, body: { email: person.email, password } });
    counts.logins += 1;
    return session.access_token;
  }
  async function signUp(email, role) {
    // If the first answer was lost, the second says that the address is taken; then the account exists.
    const n = ledger.people.length;
    const person = { email, address: `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}` };
    await ask("/auth/v1/signup", { from: person.address, body: { email, password, data: { role, full_name: "Ada Byron" } }, fine: [200, 422] });
    ledger.people.push(person);
    return person;
  }

  let staff, nonprofit, category;
  // One colleague works through the list at a time: two would decide the same.
  let desk = Promise.resolve();
  const people = {
    ledger, counts, ask, signIn,
    /** The organization with its admin. */
    async settle() {
      machine.sql("update private.app_settings set value = '100000' where key = 'rate_limit_factor'; insert into public.categories (id, name) values ('food', 'Food Assistance')");
      category = "food";
      staff = await signUp("admin@nonprofit.example", "nonprofit");
      const token = await signIn(staff);
      const made = await rpc("create_organization", { input: {
        name: "Harbor", legal_status: "charity", registration_number: "1", employee_count: "3", mission: "Help", categories: [],
      } }, token);
      nonprofit = made.id;
    },

    /** Somebody signs up, writes a draft, adds papers and sends it. */
    async asksForHelp(day) {
      const email = `person-${ledger.people.length}-${randomUUID().slice(0, 8)}@people.example`;
      const token = await signIn(await signUp(email, "requester"));
      const input = {
        category_id: category, nonprofits: [nonprofit], description: `On day ${day} we need food for two weeks.`, amount: `$${between(20, 400)}`,
        contact_consent: true, sms_consent: false, form: "wizard", first_name: "Ada", last_name: "Byron", email, phone: "5550100",
        address: "1 Main Street", city: "Boston", state: "MA", postal_code: "02101",
      };
      const draft = await rpc("save_draft", { input: { ...input, step: 4, key: randomUUID() } }, token);
      for (let n = between(0, 3); n > 0; n--) {
        const content = bytes(between(10_000, 200_000));
        const path = `${draft.id}/${randomUUID()}.pdf`;
        // Sent again, it is there already, or replaces what is not known to anybody.
        await ask(`/storage/v1/object/request-documents/${path}`, { token, body: content, headers: { "content-type": "application/pdf" }, fine: [200, 400, 409] });
        await ask("/rest/v1/request_documents", { token, headers: { prefer: "return=minimal" }, fine: [201, 409],
          body: { request_id: draft.id, name: "letter.pdf", path, mime_type: "application/pdf", size_bytes: content.length } });
        ledger.files.set(path, hash(content));
      }
      const sent = await rpc("submit_request", { input: { ...input, key: randomUUID(), draft_id: draft.id } }, token);
      ledger.requests.set(sent.id, { number: sent.request_number, status: "pending" });
    },

    /** Somebody who asked looks how it stands. */
    async looks() {
      if (ledger.people.length < 2) return;
      const token = await signIn(ledger.people[between(1, ledger.people.length - 1)]);
      await ask("/rest/v1/my_requests?select=*&limit=20", { method: "GET", token });
      await rpc("requester_dashboard", {}, token);
      counts.lists += 2;
    },

    /** Staff work through what waits: approved, denied, some of it paid; a donation is recorded. */
    worksThrough: (most) => (desk = desk.catch(() => {}).then(() => worksThrough(most))),

    async donates() {
      const token = await signIn(staff);
      const [key, amount] = [randomUUID(), between(10, 500)];
      await rpc("record_donation", { nonprofit_id: nonprofit, amount, donor_name: "A donor", donor_email: "donor@donors.example", key }, token);
      ledger.donations.set(key, amount);
    },
  };

  async function worksThrough(most) {
    const token = await signIn(staff);
    const page = await rpc("incoming_page", { nonprofit_id: nonprofit, status: "pending", page_size: most }, token);
    counts.lists += 1;
    for (const { id } of page.rows.map((row) => ({ id: row.request_id ?? row.id }))) {
      const known = ledger.requests.get(id);
      // Sent, and its answer has not arrived yet.
      if (!known || known.status !== "pending") continue;
      const [fate, amount] = [random(), between(20, 200)];
      if (fate < 0.7) {
        await decided("approve_request", { request_id: id, nonprofit_id: nonprofit, amount, accept_over_budget: true }, token);
        known.status = "approved";
        if (fate < 0.5) {
          const key = randomUUID();
          await rpc("record_payout", { request_id: id, amount, note: "by transfer", key }, token);
          ledger.payouts.set(key, amount);
        }
      } else {
        await decided("deny_request", { request_id: id, nonprofit_id: nonprofit, reason: "Not this time", reason_code: "no_capacity" }, token);
        known.status = "declined";
      }
    }
  }

  /** A decision that was made although its answer was lost is refused when it is made again. */
  async function decided(name, body, token) {
    await ask(`/rest/v1/rpc/${name}`, { body, token, fine: [200, 204, 409] });
  }

  /** Compares all that was acknowledged with what the server at `machine.api` has; sentences on what is lost. */
  people.compare = async () => {
    const lost = [];
    const all = async (path) => {
      const rows = [];
      for (let from = 0; ; from += 1000) {
        const page = await ask(`/rest/v1/${path}&limit=1000&offset=${from}`, { method: "GET", token: keys.service, headers: { apikey: keys.service } });
        rows.push(...page);
        if (page.length < 1000) return rows;
      }
    };
    const requests = new Map((await all("requests?select=id,request_number,status&order=id")).map((row) => [row.id, row]));
    for (const [id, { number, status }] of ledger.requests) {
      const found = requests.get(id);
      if (found?.request_number !== number || found?.status !== status) lost.push(`request ${number} (${status}): ${JSON.stringify(found)}`);
    }
    const documents = new Set((await all("request_documents?select=path&order=path")).map(({ path }) => path));
    for (const [path, digest] of ledger.files) {
      if (!documents.has(path)) lost.push(`the row of ${path}`);
      const answer = await fetch(`${machine.api}/storage/v1/object/authenticated/request-documents/${path}`, {
        headers: { apikey: keys.service, authorization: `Bearer ${keys.service}` } });
      const content = Buffer.from(await answer.arrayBuffer());
      if (answer.status !== 200 || hash(content) !== digest) lost.push(`file ${path}: ${answer.status}`);
    }
    const donations = new Map((await all("donations?select=pledge_key,amount&order=id")).map((row) => [row.pledge_key, row.amount]));
    for (const [key, amount] of ledger.donations) if (Number(donations.get(key)) !== amount) lost.push(`donation ${key} of ${amount}: ${donations.get(key)}`);
    const payouts = new Map((await all("budget_transactions?select=payout_key,amount&type=eq.Payout&order=id")).map((row) => [row.payout_key, row.amount]));
    for (const [key, amount] of ledger.payouts) if (Number(payouts.get(key)) !== amount) lost.push(`payout ${key} of ${amount}: ${payouts.get(key)}`);
    if (donations.size !== ledger.donations.size) lost.push(`${donations.size} donations instead of ${ledger.donations.size}`);
    if (payouts.size !== ledger.payouts.size) lost.push(`${payouts.size} payouts instead of ${ledger.payouts.size}`);
    // Every tenth person comes back.
    for (const person of ledger.people.filter((_, n) => n % 10 === 0)) await signIn(person).catch((error) => lost.push(`${person.email}: ${error.message}`));
    return lost;
  };
  return people;
}
