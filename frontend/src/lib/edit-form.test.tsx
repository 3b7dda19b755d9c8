import { act, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useEffect } from "react";
import { beforeEach, expect, it } from "vitest";
import { useEditForm } from "./edit-form";

interface Row {
  name: string;
  town: string;
  card: string;
}
const row: Row = { name: "Harbor", town: "Portland", card: "A1" };
const unkept = ["card"] as const;
type Edit = ReturnType<typeof useEditForm<Row>>;
let edit: Edit;
const give = (latest: Edit) => {
  edit = latest;
};

function Sample({ row }: { row: Row }) {
  const latest = useEditForm({ row, keptAs: "sample", unkept });
  useEffect(() => give(latest));
  return (
    <form>
      {(["name", "town", "card"] as const).map((name) => (
        <input key={name} aria-label={name} {...latest.form.register(name)} />
      ))}
    </form>
  );
}
const type = async (field: string, text: string) => {
  const user = userEvent.setup();
  await user.clear(screen.getByLabelText(field));
  await user.type(screen.getByLabelText(field), text);
};
const attempt = () => edit.attempt(edit.form.getValues());
const shown = (field: string) => screen.getByLabelText<HTMLInputElement>(field).value;
const kept = () => sessionStorage.getItem("kept-form:sample");

beforeEach(() => sessionStorage.clear());

it("sends only changed fields, with what was seen, while the others follow the row", async () => {
  const { rerender } = render(<Sample row={row} />);
  await type("town", "Augusta");
  rerender(<Sample row={{ ...row, name: "Harbor Fund", town: "Bath" }} />);
  expect(shown("name")).toBe("Harbor Fund");
  expect(shown("town")).toBe("Augusta");
  expect(attempt()).toMatchObject({ changed: { town: "Augusta" }, seen: { name: "Harbor Fund", town: "Portland" } });
  await type("town", "Portland");
  expect(attempt().changed).toEqual({});
});

it("knows after a reload what was seen before it", async () => {
  const first = render(<Sample row={row} />);
  await type("town", "Augusta");
  first.unmount();
  render(<Sample row={{ ...row, name: "Harbor Fund", town: "Bath" }} />);
  expect(shown("name")).toBe("Harbor Fund");
  expect(shown("town")).toBe("Augusta");
  expect(attempt()).toMatchObject({ changed: { town: "Augusta" }, seen: { town: "Portland" } });
});

it("tells what somebody else wrote, once", async () => {
  render(<Sample row={row} />);
  await type("town", "Augusta");
  const next = { ...row, name: "Harbor Fund", town: "Bath" };
  act(() => expect(edit.meet(next)).toEqual({ town: "Bath" }));
  expect(shown("name")).toBe("Harbor Fund");
  expect(attempt()).toMatchObject({ changed: { town: "Augusta" }, seen: { town: "Bath" } });
  act(() => expect(edit.meet(next)).toEqual({}));
});

it("keeps what is typed while saving, and shows what was saved as the database wrote it", async () => {
  const { rerender } = render(<Sample row={row} />);
  await type("name", "  Haven");
  await type("town", "Augusta");
  const sent = edit.attempt({ ...edit.form.getValues(), name: "Haven" });
  await type("town", "Bath");
  rerender(<Sample row={{ ...row, name: "Haven", town: "Augusta" }} />);
  act(() => sent.succeeded());
  expect(shown("name")).toBe("Haven");
  expect(shown("town")).toBe("Bath");
  expect(attempt()).toMatchObject({ changed: { town: "Bath" }, seen: { name: "Haven", town: "Augusta" } });
});

it("keeps nothing once it is saved or discarded, and never a field that is not to be kept", async () => {
  render(<Sample row={row} />);
  await type("card", "SECRET");
  expect(kept()).toBeNull();
  await type("town", "Augusta");
  expect(kept()).toContain("Augusta");
  expect(kept()).not.toContain("SECRET");
  // the row could not be read again
  act(() => attempt().succeeded());
  expect(kept()).toBeNull();
  expect(shown("town")).toBe("Augusta");
  expect(attempt().changed).toEqual({});
  await type("town", "Bath");
  act(() => edit.discard());
  expect(kept()).toBeNull();
  expect(shown("town")).toBe("Augusta");
});
