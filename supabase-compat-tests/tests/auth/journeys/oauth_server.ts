/** The project as an OAuth 2.1 server: clients, consent, grants; and providers that administrators add. */
import { createHash, randomUUID } from "node:crypto";
import { expect } from "vitest";
import { project, run, service, signedUp } from "../../project";
import { follow, type Journeys, NOBODY, present } from "../journey";

const CALLBACK = "https://club.example/cb";

async function newClient() {
  const { data, error } = await service().auth.admin.oauth.createClient({ client_name: `Club ${run}`, redirect_uris: [CALLBACK] });
  if (error) throw error;
  return present(data, "client");
}

/** A request for consent that waits. */
async function asked(clientId: string): Promise<string> {
  const challenge = createHash("sha256").update("a-verifier-that-is-long-enough-for-the-rules-0123").digest("base64url");
  const query = new URLSearchParams({
    client_id: clientId, redirect_uri: CALLBACK, response_type: "code", scope: "email profile", state: "s",
    code_challenge: challenge, code_challenge_method: "S256",
  });
  const page = await follow(`${project.url}/auth/v1/oauth/authorize?${query}`);
  return present(page.searchParams.get("authorization_id"), "authorization");
}

/** A user who looks at a request for consent. */
async function looking() {
  const [{ supabase, user, email }, client] = [await signedUp(), await newClient()];
  const authorization = await asked(client.client_id);
  const { data, error } = await supabase.auth.oauth.getAuthorizationDetails(authorization);
  if (error) throw error;
  return { supabase, user, email, client, authorization, details: data };
}

const provider = () => ({
  provider_type: "oauth2" as const,
  identifier: `custom:p${randomUUID().slice(0, 8)}`,
  name: "Mine",
  client_id: "c",
  client_secret: "s",
  scopes: ["a"],
  authorization_url: "https://93.184.216.34/auth",
  token_url: "https://93.184.216.34/token",
  userinfo_url: "https://93.184.216.34/user",
});

export const oauthServer: Journeys = {
  "auth.oauth.getAuthorizationDetails": {
    async succeeds() {
      const { details, client, user, email } = await looking();
      expect(details).toMatchObject({ client: { id: client.client_id }, user: { id: user.id, email }, scope: "email profile" });
    },
    async fails() {
      const { authorization } = await looking();
      const { supabase } = await signedUp();
      const { error } = await supabase.auth.oauth.getAuthorizationDetails(authorization);
      expect(error).toMatchObject({ status: 404, code: "oauth_authorization_not_found" });
    },
  },
  "auth.oauth.approveAuthorization": {
    async succeeds() {
      const { supabase, authorization } = await looking();
      const { data, error } = await supabase.auth.oauth.approveAuthorization(authorization, { skipBrowserRedirect: true });
      expect(error).toBeNull();
      const back = new URL(present(data, "answer").redirect_url);
      expect(`${back.origin}${back.pathname}`).toBe(CALLBACK);
      expect([back.searchParams.has("code"), back.searchParams.get("state")]).toEqual([true, "s"]);
    },
    async fails() {
      const { supabase } = await signedUp();
      const { error } = await supabase.auth.oauth.approveAuthorization("nope", { skipBrowserRedirect: true });
      expect(error).toMatchObject({ status: 404, code: "oauth_authorization_not_found" });
    },
  },
  "auth.oauth.denyAuthorization": {
    async succeeds() {
      const { supabase, authorization } = await looking();
      const { data } = await supabase.auth.oauth.denyAuthorization(authorization, { skipBrowserRedirect: true });
      expect(new URL(present(data, "answer").redirect_url).searchParams.get("error")).toBe("access_denied");
    },
    async fails() {
      const { supabase, authorization } = await looking();
      await supabase.auth.oauth.denyAuthorization(authorization, { skipBrowserRedirect: true });
      const { error } = await supabase.auth.oauth.denyAuthorization(authorization, { skipBrowserRedirect: true });
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
  "auth.oauth.listGrants": {
    async succeeds() {
      const { supabase, authorization, client } = await looking();
      await supabase.auth.oauth.approveAuthorization(authorization, { skipBrowserRedirect: true });
      const { data, error } = await supabase.auth.oauth.listGrants();
      expect(error).toBeNull();
      expect(data).toMatchObject([{ client: { id: client.client_id }, scopes: ["email", "profile"] }]);
    },
    async fails() {
      const { supabase, session } = await signedUp();
      await service().auth.admin.signOut(session.access_token);
      expect((await supabase.auth.oauth.listGrants()).error?.name).toBe("AuthSessionMissingError");
    },
  },
  "auth.oauth.revokeGrant": {
    async succeeds() {
      const { supabase, authorization, client } = await looking();
      await supabase.auth.oauth.approveAuthorization(authorization, { skipBrowserRedirect: true });
      expect((await supabase.auth.oauth.revokeGrant({ clientId: client.client_id })).error).toBeNull();
      expect((await supabase.auth.oauth.listGrants()).data).toEqual([]);
    },
    async fails() {
      const { supabase } = await signedUp();
      const { error } = await supabase.auth.oauth.revokeGrant({ clientId: NOBODY });
      expect(error).toMatchObject({ status: 404, code: "oauth_consent_not_found" });
    },
  },
  "auth.admin.oauth.createClient": {
    async succeeds() {
      const client = await newClient();
      expect(client).toMatchObject({ client_type: "confidential", redirect_uris: [CALLBACK], registration_type: "manual" });
      expect(client.client_secret).toBeTruthy();
    },
    async fails() {
      const { error } = await service().auth.admin.oauth.createClient({ client_name: "Club", redirect_uris: [] });
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
  "auth.admin.oauth.getClient": {
    async succeeds() {
      const { client_id } = await newClient();
      const { data, error } = await service().auth.admin.oauth.getClient(client_id);
      expect(error).toBeNull();
      expect(data).toMatchObject({ client_id, redirect_uris: [CALLBACK] });
      expect(data).not.toHaveProperty("client_secret");
    },
    async fails() {
      const { error } = await service().auth.admin.oauth.getClient(NOBODY);
      expect(error).toMatchObject({ status: 404, code: "oauth_client_not_found" });
    },
  },
  "auth.admin.oauth.listClients": {
    async succeeds() {
      const { client_id } = await newClient();
      const { data, error } = await service().auth.admin.oauth.listClients({ page: 1, perPage: 100 });
      expect(error).toBeNull();
      expect(data.clients.map((client) => client.client_id)).toContain(client_id);
    },
    async fails() {
      const { supabase } = await signedUp();
      expect((await supabase.auth.admin.oauth.listClients()).error).toMatchObject({ status: 403, code: "not_admin" });
    },
  },
  "auth.admin.oauth.updateClient": {
    async succeeds() {
      const { client_id } = await newClient();
      const { data, error } = await service().auth.admin.oauth.updateClient(client_id, { client_name: "Society" });
      expect(error).toBeNull();
      expect(data).toMatchObject({ client_id, client_name: "Society" });
    },
    async fails() {
      const { client_id } = await newClient();
      const { error } = await service().auth.admin.oauth.updateClient(client_id, {});
      expect(error).toMatchObject({ status: 400, message: "No fields provided for update" });
    },
  },
  "auth.admin.oauth.regenerateClientSecret": {
    async succeeds() {
      const { client_id, client_secret } = await newClient();
      const { data, error } = await service().auth.admin.oauth.regenerateClientSecret(client_id);
      expect(error).toBeNull();
      expect(present(data?.client_secret, "secret")).not.toBe(client_secret);
    },
    async fails() {
      const { error } = await service().auth.admin.oauth.regenerateClientSecret(NOBODY);
      expect(error).toMatchObject({ status: 404, code: "oauth_client_not_found" });
    },
  },
  "auth.admin.oauth.deleteClient": {
    async succeeds() {
      const { client_id } = await newClient();
      expect((await service().auth.admin.oauth.deleteClient(client_id)).error).toBeNull();
      expect((await service().auth.admin.oauth.getClient(client_id)).error).toMatchObject({ status: 404 });
    },
    async fails() {
      expect((await service().auth.admin.oauth.deleteClient(NOBODY)).error).toMatchObject({ status: 404 });
    },
  },
  "auth.admin.customProviders.createProvider": {
    async succeeds() {
      const { identifier, ...rest } = provider();
      const { data, error } = await service().auth.admin.customProviders.createProvider({ identifier, ...rest });
      expect(error).toBeNull();
      expect(data).toMatchObject({ identifier, name: "Mine", enabled: true });
      expect(data).not.toHaveProperty("client_secret");
    },
    async fails() {
      const inside = { ...provider(), token_url: "https://10.0.0.1/token" };
      const { error } = await service().auth.admin.customProviders.createProvider(inside);
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
  "auth.admin.customProviders.getProvider": {
    async succeeds() {
      const made = provider();
      await service().auth.admin.customProviders.createProvider(made);
      const { data } = await service().auth.admin.customProviders.getProvider(made.identifier);
      expect(data).toMatchObject({ identifier: made.identifier });
    },
    async fails() {
      const { error } = await service().auth.admin.customProviders.getProvider("custom:nobody");
      expect(error).toMatchObject({ status: 404, code: "custom_provider_not_found" });
    },
  },
  "auth.admin.customProviders.listProviders": {
    async succeeds() {
      const made = provider();
      await service().auth.admin.customProviders.createProvider(made);
      const { data, error } = await service().auth.admin.customProviders.listProviders();
      expect(error).toBeNull();
      expect(data?.providers.map(({ identifier }) => identifier)).toContain(made.identifier);
    },
    async fails() {
      const { supabase } = await signedUp();
      const { error } = await supabase.auth.admin.customProviders.listProviders();
      expect(error).toMatchObject({ status: 403, code: "not_admin" });
    },
  },
  "auth.admin.customProviders.updateProvider": {
    async succeeds() {
      const made = provider();
      await service().auth.admin.customProviders.createProvider(made);
      const { data } = await service().auth.admin.customProviders.updateProvider(made.identifier, { name: "New" });
      expect(data).toMatchObject({ name: "New", client_id: "c" });
    },
    async fails() {
      const { error } = await service().auth.admin.customProviders.updateProvider("custom:nobody", { name: "New" });
      expect(error).toMatchObject({ status: 404, code: "custom_provider_not_found" });
    },
  },
  "auth.admin.customProviders.deleteProvider": {
    async succeeds() {
      const made = provider();
      await service().auth.admin.customProviders.createProvider(made);
      expect((await service().auth.admin.customProviders.deleteProvider(made.identifier)).error).toBeNull();
      expect((await service().auth.admin.customProviders.getProvider(made.identifier)).error).toMatchObject({ status: 404 });
    },
    async fails() {
      const { error } = await service().auth.admin.customProviders.deleteProvider("custom:nobody");
      expect(error).toMatchObject({ status: 404, code: "custom_provider_not_found" });
    },
  },
};
