import { createClient } from "npm:@supabase/supabase-js@2";

const service = createClient(Deno.env.get("SUPABASE_URL")!, Deno.env.get("SUPABASE_SERVICE_ROLE_KEY")!);

Deno.serve(async (request) => {
  if (request.headers.get("x-key") !== "kept-in-the-vault") return new Response("who are you?", { status: 403 });
  const { id } = await request.json();
  const { error } = await service.from("notes").update({ seen: true }).eq("id", id);
  return new Response(error?.message ?? "seen", { status: error ? 500 : 200 });
});
