import { createClient } from "npm:@supabase/supabase-js@2";

// Acts as the caller, whose policies decide.
Deno.serve(async (request) => {
  const client = createClient(Deno.env.get("SUPABASE_URL")!, Deno.env.get("SUPABASE_ANON_KEY")!, {
    global: { headers: { Authorization: request.headers.get("Authorization")! } },
  });
  const { data, error } = await client.from("rows").select("id");
  return Response.json({ rows: data, error: error?.message ?? null });
});
