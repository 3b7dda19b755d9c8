import { useQuery } from "@tanstack/react-query";
import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { Dialog } from "@/components/ui/dialog";
import { renderScreen } from "@/testing/render";
import { teamQuery, type Member } from "../api";
import { EditMember } from "./member-dialogs";

const member: Member = {
  id: "m1",
  full_name: "Tomasz Kowalczyk",
  email: "tomasz@mail.example",
  role: "admin",
  user_id: "u2",
  is_active: true,
  invited_at: null,
  joined_at: null,
  created_at: "2026-01-01T00:00:00Z",
};

/** The team in the database, and the updates that came, each with its filters. */
const team = vi.hoisted(() => ({ now: {} as Member, writes: [] as object[] }));
vi.mock("@/lib/supabase", () => {
  const from = () => ({
    select: () => {
      const query = {
        eq: () => query,
        order: () => query,
        then: (done: (answer: object) => void) => done({ data: [team.now], error: null }),
      };
      return query;
    },
    update: (change: Partial<Member>) => {
      const filters: Record<string, unknown> = {};
      const query = {
        eq: (column: string, value: unknown) => ((filters[column] = value), query),
        select: () => query,
        single: () => {
          team.writes.push({ change, filters });
          const found = Object.entries(filters).every(([column, value]) => team.now[column as "id"] === value);
          if (!found) return Promise.resolve({ data: null, error: { code: "PGRST116" } });
          team.now = { ...team.now, ...change };
          return Promise.resolve({ data: team.now, error: null });
        },
      };
      return query;
    },
  });
  return { getSupabase: () => Promise.resolve({ from }) };
});

const onClose = vi.fn<() => void>();
function Page({ of = member }: { of?: Member }) {
  useQuery(teamQuery("np-001"));
  return (
    <Dialog open>
      <EditMember nonprofitId="np-001" userId="u1" member={of} onClose={onClose} />
    </Dialog>
  );
}
const save = () => screen.getByRole("button", { name: "Save changes" });

beforeEach(() => {
  sessionStorage.clear();
  team.now = member;
  team.writes = [];
  onClose.mockReset();
});

it("does not give back a role that a colleague has taken away while the name was corrected", async () => {
  const { user } = renderScreen(<Page />);
  team.now = { ...member, role: "employee" };
  await user.type(screen.getByLabelText("Full name"), "-Nowak");
  await user.click(save());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(team.now).toMatchObject({ full_name: "Tomasz Kowalczyk-Nowak", role: "employee" });
});

it("says which role a colleague gave meanwhile before it gives another", async () => {
  const { user } = renderScreen(<Page />);
  team.now = { ...member, role: "employee" };
  await user.selectOptions(screen.getByLabelText("Role"), "Manager");
  await user.click(save());
  const role = await screen.findByLabelText("Role");
  await waitFor(() => expect(role).toHaveAccessibleDescription(/gave this person the role Employee meanwhile/));
  expect(screen.queryByRole("alert")).toBeNull();
  expect(team.now.role).toBe("employee");
  await user.click(save());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(team.writes).toEqual([
    { change: { role: "manager" }, filters: { id: "m1", role: "admin" } },
    { change: { role: "manager" }, filters: { id: "m1", role: "employee" } },
  ]);
});

it("sends nothing if nothing was changed", async () => {
  const { user } = renderScreen(<Page />);
  await user.click(save());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(team.writes).toEqual([]);
});

it("keeps what was typed until it is saved or cancelled", async () => {
  const name = () => screen.getByLabelText("Full name");
  const first = renderScreen(<Page />);
  await first.user.type(name(), "-Nowak");
  first.unmount();
  const second = renderScreen(<Page />);
  expect(name()).toHaveValue("Tomasz Kowalczyk-Nowak");
  await second.user.click(screen.getByRole("button", { name: "Cancel" }));
  expect(sessionStorage).toHaveLength(0);
  second.unmount();
  const third = renderScreen(<Page />);
  expect(name()).toHaveValue("Tomasz Kowalczyk");
  await third.user.type(name(), "-Nowak");
  await third.user.click(save());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(sessionStorage).toHaveLength(0);
});

it("reads the reader's own role again after changing it", async () => {
  const refresh = vi.fn(() => Promise.resolve());
  team.now = { ...member, user_id: "u1" };
  const { user } = renderScreen(<Page of={team.now} />, { session: { refresh } });
  await user.type(screen.getByLabelText("Full name"), "-Nowak");
  await user.click(save());
  await waitFor(() => expect(onClose).toHaveBeenCalledOnce());
  expect(refresh).not.toHaveBeenCalled();
  await user.selectOptions(screen.getByLabelText("Role"), "Employee");
  await user.click(save());
  await waitFor(() => expect(refresh).toHaveBeenCalledOnce());
});
