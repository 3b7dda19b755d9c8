import { corsHeaders } from "../_shared/cors.ts";

Deno.serve(async (request) => {
  if (request.method === "OPTIONS") return new Response("ok", { headers: corsHeaders });
  const { name } = await request.json();
  return Response.json({ message: `${Deno.env.get("GREETING")}, ${name}` }, { headers: corsHeaders });
});
