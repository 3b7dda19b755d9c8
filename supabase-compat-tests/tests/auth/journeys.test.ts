/** Every method of `supabase.auth`: a journey that succeeds and one that is refused. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { account } from "./journeys/account";
import { admin } from "./journeys/admin";
import { factors } from "./journeys/factors";
import { oauthServer } from "./journeys/oauth_server";
import { passkeys } from "./journeys/passkeys";
import { recoveryCodes } from "./journeys/recovery_codes";
import { sessions } from "./journeys/sessions";
import { signingIn } from "./journeys/signing_in";
import { unlessOff } from "../needs";
import { authMethods, INNER } from "./methods";
import { startOutside, stopOutside } from "./outside";

const journeys = { ...signingIn, ...sessions, ...account, ...factors, ...recoveryCodes, ...passkeys, ...oauthServer, ...admin };

beforeAll(startOutside);
afterAll(stopOutside);

describe.each(Object.entries(journeys))("supabase.%s", (_, journey) => {
  it("succeeds", () => unlessOff(journey.succeeds));
  it("reports an error", () => unlessOff(journey.fails));
});

describe("supabase-js's methods", () => {
  it("each have a journey", () => {
    const methods = authMethods();
    expect(methods.length).toBeGreaterThan(80);
    expect(methods.filter((name) => !(name in journeys) && !(name in INNER))).toEqual([]);
  });

  it("are the only subjects of journeys", () => {
    const methods = new Set(authMethods());
    expect([...Object.keys(journeys), ...Object.keys(INNER)].filter((name) => !methods.has(name))).toEqual([]);
  });

  it("are reached by a journey if not called directly", () => {
    const reached = Object.values(INNER).filter((through) => through.startsWith("auth."));
    expect(reached.filter((through) => !(through in journeys))).toEqual([]);
  });
});
