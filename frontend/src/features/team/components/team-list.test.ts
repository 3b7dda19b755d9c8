import { expect, it } from "vitest";
import type { Member } from "../api";
import { findMembers } from "./team-list";

const member = (full_name: string, email: string) => ({ id: email, full_name, email }) as Member;
const team = [
  member("Ruth Okonkwo", "ruth@harbor.example"),
  member("Nguyễn Thị Minh Khai", "khai@harbor.example"),
  member("", "new@mail.example"),
];

it.each([
  ["", 3],
  ["ruth", 1],
  ["  OKON ", 1],
  ["harbor", 2],
  ["nguyễn", 1],
  ["new@", 1],
  ["nobody", 0],
])("finds by name or address: %j gives %i", (search, count) => {
  expect(findMembers(team, search)).toHaveLength(count);
});
