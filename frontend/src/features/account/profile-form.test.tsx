import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import type { Profile } from "./api";
import { ProfileForm } from "./profile-form";

const rpc = vi.hoisted(() => vi.fn<(name: string, args: { input: object }) => Promise<{ error: null }>>());
vi.mock("@/lib/supabase", () => ({ getSupabase: () => Promise.resolve({ rpc }) }));

const profile: Profile = {
  id: "u1",
  email: "marie@mail.example",
  full_name: "Marie Désir",
  first_name: "Marie",
  middle_name: null,
  last_name: "Désir",
  phone: "2075550100",
  sms_consent: true,
  sms_stopped_at: null,
  bio: null,
  birthday: "1980-02-03",
  age: 46,
  country: "United States",
  photo_path: null,
  id_type: "Passport",
  id_number: "A1",
};
const open = (stored: Partial<Profile> = {}) => renderScreen(<ProfileForm profile={{ ...profile, ...stored }} />);
const bio = () => screen.getByRole("textbox", { name: /^Bio/ });
const phone = () => screen.getByRole("textbox", { name: /^Phone/ });
const idNumber = () => screen.getByRole("textbox", { name: /^ID number/i });
const sent = () => rpc.mock.calls.map(([, { input }]) => input);

beforeEach(() => {
  sessionStorage.clear();
  rpc.mockReset().mockResolvedValue({ error: null });
});

it("sends only what was changed, and so no consent to texts that a STOP has ended meanwhile", async () => {
  const { user } = open();
  await user.type(bio(), "I sew.");
  await user.click(screen.getByRole("button", { name: "Save Changes" }));
  await waitFor(() => expect(rpc).toHaveBeenCalled());
  expect(sent()).toEqual([{ bio: "I sew." }]);
});

it("keeps what was typed, except the ID number, until it is saved or cancelled", async () => {
  const first = open();
  await first.user.type(bio(), "I sew.");
  await first.user.type(idNumber(), "234");
  first.unmount();
  expect(JSON.stringify(sessionStorage)).not.toContain("A1234");

  const { user } = open({ phone: "2075550111" });
  expect(bio()).toHaveValue("I sew.");
  expect(idNumber()).toHaveValue("A1");
  expect(phone()).toHaveValue("2075550111");
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  expect(bio()).toHaveValue("");
  expect(sessionStorage).toHaveLength(0);
  await user.type(bio(), "I mend.");
  await user.click(screen.getByRole("button", { name: "Save Changes" }));
  await waitFor(() => expect(sessionStorage).toHaveLength(0));
  expect(sent()).toEqual([{ bio: "I mend." }]);
});
