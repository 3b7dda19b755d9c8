import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import { SavedReplies } from "./saved-replies";

interface Row {
  id: string;
  title: string;
  body: string;
}
const server = vi.hoisted(() => ({ rows: [] as Row[], written: [] as unknown[] }));
vi.mock("@/lib/supabase", () => {
  const read = () => Promise.resolve({ data: [...server.rows], error: null });
  const query = { eq: () => query, order: read };
  const table = {
    select: () => query,
    upsert: (row: Row) => {
      server.written.push(row);
      server.rows = [...server.rows, { ...row, id: row.title }];
      return Promise.resolve({ error: null });
    },
    delete: () => ({
      eq: (_: string, id: string) => {
        server.rows = server.rows.filter((row) => row.id !== id);
        return Promise.resolve({ error: null });
      },
    }),
  };
  return { getSupabase: () => Promise.resolve({ from: () => table }) };
});

const sent = vi.fn();

function Message() {
  const [text, setText] = useState("Dear Marie,");
  return (
    <form onSubmit={sent}>
      <textarea aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      <SavedReplies nonprofitId="np-1" kind="info" text={text} onText={setText} />
    </form>
  );
}

beforeEach(() => {
  server.rows = [{ id: "bill", title: "Bill", body: "Please send the bill." }];
  server.written = [];
});

const button = (name: string | RegExp) => screen.findByRole("button", { name });

it("inserts a reply below the typed text", async () => {
  const user = userEvent.setup();
  renderScreen(<Message />);
  await user.selectOptions(await screen.findByLabelText("Saved replies"), "Bill");
  await user.click(await button("Put it in"));
  expect(screen.getByLabelText("Message")).toHaveValue("Dear Marie,\n\nPlease send the bill.");
});

it("saves a text under a name without submitting the surrounding form", async () => {
  const user = userEvent.setup();
  renderScreen(<Message />);
  await user.click(await button("Save this text for next time"));
  const name = screen.getByLabelText("Name of the reply");
  expect(name).toHaveFocus();
  await user.keyboard("{Enter}");
  expect(name).toHaveAccessibleDescription(/Give it a name\./);
  await user.type(name, " Hello {Enter}");
  await waitFor(() => expect(screen.queryByLabelText("Name of the reply")).not.toBeInTheDocument());
  expect(server.written).toEqual([{ nonprofit_id: "np-1", kind: "info", title: "Hello", body: "Dear Marie," }]);
  expect(sent).not.toHaveBeenCalled();
  // a saved reply is not offered for saving again
  expect(await screen.findByRole("option", { name: "Hello" })).toBeInTheDocument();
  expect(screen.queryByRole("button", { name: "Save this text for next time" })).not.toBeInTheDocument();
});

it("deletes a reply after confirmation", async () => {
  const user = userEvent.setup();
  renderScreen(<Message />);
  await user.selectOptions(await screen.findByLabelText("Saved replies"), "Bill");
  await user.click(await button("Delete “Bill”"));
  const dialog = await screen.findByRole("alertdialog", { name: "Delete this saved reply?" });
  expect(server.rows).toHaveLength(1);
  await user.click(await screen.findByRole("button", { name: "Delete “Bill”" }));
  await waitFor(() => expect(dialog).not.toBeInTheDocument());
  expect(server.rows).toEqual([]);
  await waitFor(() => expect(screen.queryByLabelText("Saved replies")).not.toBeInTheDocument());
});
