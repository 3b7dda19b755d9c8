import { afterEach, expect, it } from "vitest";
import { translate } from "@/messages/translate";
import { addressLines, NO_ADDRESS, NO_POSTAL_CODE } from "./address";

afterEach(() => translate("en"));

it("writes a street with its postal code", () => {
  expect(addressLines("12 Wharf Street", "Portland", "ME", "04101")).toEqual(["12 Wharf Street", "Portland, ME 04101"]);
});

it("writes only the town for a requester without a fixed address, in the user's language", async () => {
  expect(addressLines(NO_ADDRESS, "Portland", "ME", NO_POSTAL_CODE)).toEqual(["No fixed address", "Portland, ME"]);
  await translate("es");
  expect(addressLines(NO_ADDRESS, "Portland", "ME", NO_POSTAL_CODE)[0]).toBe("Sin dirección fija");
});
