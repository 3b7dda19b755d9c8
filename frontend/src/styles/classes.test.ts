import { expect, it } from "vitest";
import { classes, kept, list } from "../../scripts/classes.mjs";

it("every class in our stylesheets is used", () => {
  expect(classes().length).toBeGreaterThan(100);
  expect(
    classes()
      .filter(({ users }) => users.length === 0)
      .map(({ name }) => name),
  ).toEqual([]);
});

it("the list of classes is up to date (`npm run classes`)", () => {
  expect(kept()).toBe(list());
});
