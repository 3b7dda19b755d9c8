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
  it("does what it says", () => unlessOff(journey.succeeds));
  it("says what went wrong", () => unlessOff(journey.fails));
});

describe("the client's methods", () => {
  it("have a journey each", () => {
    const methods = authMethods();
    expect(methods.length).toBeGreaterThan(80);
    expect(methods.filter((name) => !(name in journeys) && !(name in INNER))).toEqual([]);
  });

  it("are what the journeys are about", () => {
    const methods = new Set(authMethods());
    expect([...Object.keys(journeys), ...Object.keys(INNER)].filter((name) => !methods.has(name))).toEqual([]);
  });

  it("are reached by journeys where they are not called themselves", () => {
    const reached = Object.values(INNER).filter((through) => through.startsWith("auth."));
    expect(reached.filter((through) => !(through in journeys))).toEqual([]);
  });
});
