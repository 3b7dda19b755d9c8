/** A queue, a schedule, a request from the database and the vault, one after the other: pgmq, pg_cron, pg_net, supabase_vault. */
import { expect, test } from "vitest";
import { found, project } from "./started";

const here = project("work");

test("a scheduled job processes a queued note and the database calls a function", async () => {
  const service = here.service();
  expect((await service.rpc("keep_url", { url: here.url() })).error).toBeNull();
  const queued = await here.client().rpc("queue_note", { message: { text: "from the queue" } });
  expect(queued.error).toBeNull();
  const note = await found("the note", async () => {
    const { data } = await service.from("notes").select("text, seen, updated_at").eq("seen", true);
    return (data as { text: string; updated_at: string }[] | null)?.[0];
  });
  expect(note.text).toBe("from the queue");
  expect(new Date(note.updated_at).getFullYear()).toBeGreaterThan(2000);
});
