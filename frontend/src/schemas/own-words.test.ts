/** Every form has its own error texts: no message of the schema library reaches a person. */
import { expect, it } from "vitest";
import { z } from "zod";

const modules = import.meta.glob<Record<string, unknown>>("../features/*/schema.ts", { eager: true });

const forms = Object.entries(modules).flatMap(([file, exported]) =>
  Object.entries(exported).flatMap(([name, schema]): [string, z.ZodObject][] =>
    schema instanceof z.ZodObject ? [[`${file.split("/")[2]} ${name}`, schema]] : [],
  ),
);

const THEIRS = /too (?:big|small)|invalid (?:input|string|option)|expected/i;

/** Possible inputs of a text field: empty, blank, very long, other. */
const TYPED = ["", " ", "x", "x".repeat(20_000), "9".repeat(30), `${"x".repeat(400)}@y.example`];

/** Messages at the schema's text fields, for everything in TYPED. */
function messages(schema: z.ZodObject): string[] {
  const issuesAt = (key: string, value: string) =>
    (schema.safeParse({ [key]: value }).error?.issues ?? []).filter((issue) => issue.path[0] === key);
  return Object.keys(schema.shape)
    .filter((key) => !issuesAt(key, "text").some((issue) => issue.code === "invalid_type"))
    .flatMap((key) => TYPED.flatMap((typed) => issuesAt(key, typed)).map((issue) => `${key}: ${issue.message}`));
}

it.each(forms)("%s", (_, schema) => {
  expect(messages(schema).filter((message) => THEIRS.test(message))).toEqual([]);
});

it("finds the forms", () => {
  expect(forms.map(([name]) => name)).toEqual(
    expect.arrayContaining(["account profileSchema", "budget donationSchema", "organizations settingsSchema"]),
  );
});
