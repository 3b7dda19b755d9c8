export const corsHeaders = { "access-control-allow-origin": "https://app.compat.test", "access-control-allow-headers": "authorization, content-type" };
