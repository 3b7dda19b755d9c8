// The function of the tests for servers that run edge functions; Ferrobase has it as `functions."compat-echo"` too.
Deno.serve(async (request) => {
  const text = await request.text();
  let got: unknown = {};
  try {
    if (text) got = JSON.parse(text);
  } catch {
    return Response.json({ message: "the body is not JSON" }, { status: 400 });
  }
  const token = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
  const role = token.includes(".") ? JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).role : "anon";
  return Response.json({ got, role });
});
