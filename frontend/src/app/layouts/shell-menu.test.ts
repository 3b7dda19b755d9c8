import { describe, expect, it } from "vitest";
import "@/messages/en/shell";
import { isCurrent, shellMenu } from "./shell-menu";

const menu = (role: "admin" | "manager" | "employee" | "volunteer") =>
  shellMenu({ role: "nonprofit", nonprofitRole: role }, { role });
const labels = (role: Parameters<typeof menu>[0]) => menu(role).map((item) => item.label);
const currentAt = (pathname: string) =>
  menu("admin")
    .filter((item) => isCurrent(item, pathname))
    .map((item) => item.label);

describe("the sidebar of nonprofit staff", () => {
  it.each([
    ["admin", ["Dashboard", "Requests", "Budget", "Team Management", "Settings"]],
    ["manager", ["Dashboard", "Requests", "Budget", "Team Management", "Settings"]],
    ["employee", ["Dashboard", "Requests"]],
    ["volunteer", ["Dashboard"]],
  ] as const)("shows a %s %j", (role, expected) => {
    expect(labels(role)).toEqual(expected);
  });

  it("follows the role in the organization, not the one that the account chose", () => {
    const items = shellMenu({ role: "nonprofit", nonprofitRole: "admin" }, { role: "employee" });
    expect(items.map((item) => item.label)).toEqual(["Dashboard", "Requests"]);
  });

  it.each([
    ["/nonprofit-dashboard", "Dashboard"],
    ["/nonprofit-requests", "Requests"],
    ["/nonprofit-request/demo-req-001", "Requests"],
    ["/nonprofit-request-details/demo-req-001", "Requests"],
    ["/budget", "Budget"],
    ["/nonprofit-budget", "Budget"],
    ["/nonprofit-donor-communication", "Budget"],
    ["/team-management", "Team Management"],
    ["/categories-management", "Settings"],
  ])("marks at %s the entry %s", (pathname, label) => {
    expect(currentAt(pathname)).toEqual([label]);
  });
});

it("shows a donor the dashboard and the pledge, and marks the dashboard alone as the current place", () => {
  const items = shellMenu({ role: "donor", nonprofitRole: null }, null);
  expect(items.map((item) => [item.label, isCurrent(item, "/donor-dashboard")])).toEqual([
    ["Dashboard", true],
    ["Make a Donation", false],
  ]);
});
