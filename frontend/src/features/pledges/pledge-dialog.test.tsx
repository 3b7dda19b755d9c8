import { screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { Dialog } from "@/components/ui/dialog";
import { getSupabase } from "@/lib/supabase";
import { renderScreen } from "@/testing/render";
import { MOST_NAMES } from "./api";
import { PledgeContent } from "./pledge-dialog";

vi.mock("@/lib/supabase", () => ({ getSupabase: vi.fn() }));

/** A directory of so many nonprofits, asked as supabase-js asks; what it was asked for. */
function directory(size: number) {
  const all = Array.from({ length: size }, (_, n) => ({
    id: `np-${n}`,
    name: `Nonprofit ${String(n).padStart(4, "0")}`,
  }));
  const asked: { patterns: readonly string[]; limit: number }[] = [];
  const select = () => {
    const patterns: string[] = [];
    const query = {
      ilike: (_column: string, pattern: string) => (patterns.push(pattern), query),
      order: () => query,
      limit: (limit: number) => {
        asked.push({ patterns, limit });
        const fits = ({ name }: { name: string }) =>
          patterns.every((pattern) => name.toLowerCase().includes(pattern.replaceAll("%", "")));
        return Promise.resolve({ data: all.filter(fits).slice(0, limit), error: null });
      },
    };
    return query;
  };
  vi.mocked(getSupabase).mockResolvedValue({ from: () => ({ select }) } as never);
  return asked;
}

const open = () =>
  renderScreen(
    <Dialog open>
      <PledgeContent donor={{ email: "d@mail.example", fullName: "Daniel" }} />
    </Dialog>,
  );

beforeEach(() => {
  sessionStorage.clear();
  vi.mocked(getSupabase).mockReset();
});

it("shows a short directory as a list", async () => {
  directory(3);
  open();
  expect(await screen.findByRole("combobox", { name: "Nonprofit" })).toHaveTextContent("Nonprofit 0002");
  expect(screen.queryByRole("searchbox")).not.toBeInTheDocument();
});

it("searches a long directory without loading it all and keeps the selection", async () => {
  const asked = directory(5_000);
  const { user } = open();
  const list = await screen.findByRole("combobox", { name: "Nonprofit" });
  expect(screen.getByText(/These are the first 50/)).toBeVisible();
  await user.selectOptions(list, "Nonprofit 0007");
  await user.type(screen.getByRole("searchbox", { name: "Search by name" }), "4321");
  expect(await screen.findByRole("option", { name: "Nonprofit 4321" })).toBeInTheDocument();
  expect(list).toHaveValue("np-7");
  expect(list).toHaveTextContent("Nonprofit 0007");
  await user.clear(screen.getByRole("searchbox"));
  await user.type(screen.getByRole("searchbox"), "nobody");
  expect(await screen.findByText("No nonprofit has this name.")).toBeVisible();
  expect(new Set(asked.map(({ limit }) => limit))).toEqual(new Set([MOST_NAMES + 1]));
});

it("keeps what was typed, with the name of a nonprofit that is not in the first list, until it is cancelled", async () => {
  directory(5_000);
  const first = open();
  await first.user.type(await screen.findByRole("searchbox", { name: "Search by name" }), "4321");
  await first.user.selectOptions(
    screen.getByRole("combobox", { name: "Nonprofit" }),
    await screen.findByRole("option", { name: "Nonprofit 4321" }),
  );
  await first.user.type(screen.getByRole("textbox", { name: /^Amount/ }), "25");
  first.unmount();

  const { user, unmount } = open();
  expect(await screen.findByRole("combobox", { name: "Nonprofit" })).toHaveDisplayValue("Nonprofit 4321");
  expect(screen.getByRole("textbox", { name: /^Amount/ })).toHaveValue("25");
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  unmount();
  open();
  expect(await screen.findByRole("textbox", { name: /^Amount/ })).toHaveValue("");
});

it("pledges as the donor, whatever address they typed on the public page", async () => {
  directory(3);
  const page = renderScreen(
    <Dialog open>
      <PledgeContent />
    </Dialog>,
  );
  await page.user.type(await screen.findByRole("textbox", { name: /^Email/ }), "other@mail.example");
  page.unmount();
  const rpc = vi.fn<(name: string, args: { input: object }) => unknown>(() =>
    Promise.resolve({ data: { nonprofit: "Nonprofit 0001", amount: 99.5 }, error: null }),
  );
  Object.assign(await getSupabase(), { rpc });
  const { user } = open();
  await user.selectOptions(await screen.findByRole("combobox", { name: "Nonprofit" }), "Nonprofit 0001");
  await user.type(screen.getByRole("textbox", { name: /^Amount/ }), "99,50");
  await user.click(screen.getByRole("button", { name: "Promise this donation" }));
  expect(await screen.findByText(/d@mail\.example/)).toBeVisible();
  expect(rpc.mock.calls.map(([, { input }]) => input)).toEqual([
    { nonprofit_id: "np-1", amount: 99.5, email: "d@mail.example", name: "Daniel", key: expect.any(String) as string },
  ]);
  expect(sessionStorage).toHaveLength(0);
});
