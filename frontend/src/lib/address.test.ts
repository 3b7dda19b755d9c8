import { afterEach, expect, it } from "vitest";
import { translate } from "@/messages/translate";
import { addressLines, NO_ADDRESS, NO_POSTAL_CODE } from "./address";

afterEach(() => translate("en"));

it("writes a street with its code", () => {
  expect(addressLines("12 Wharf Street", "Portland", "ME", "04101")).toEqual(["12 Wharf Street", "Portland, ME 04101"]);
});

it("names the town alone of a person without a fixed address, in the reader's language", async () => {
  expect(addressLines(NO_ADDRESS, "Portland", "ME", NO_POSTAL_CODE)).toEqual(["No fixed address", "Portland, ME"]);
  await translate("es");
  expect(addressLines(NO_ADDRESS, "Portland", "ME", NO_POSTAL_CODE)[0]).toBe("Sin dirección fija");
});
