import { describe, expect, it } from "vitest";
import "@/messages/en/shell";
import { crumbsOf, isCurrent, shellMenu } from "./shell-menu";

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

  it("uses the role in the organization, not the account's", () => {
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

it("shows a donor the dashboard and the pledge and marks only the dashboard as current", () => {
  const items = shellMenu({ role: "donor", nonprofitRole: null }, null);
  expect(items.map((item) => [item.label, isCurrent(item, "/donor-dashboard")])).toEqual([
    ["Dashboard", true],
    ["Make a Donation", false],
  ]);
});

describe("the breadcrumb", () => {
  const words = (pathname: string, name: string | null) =>
    crumbsOf("Harbor Relief Fund", menu("admin"), pathname, name).map(({ label, to }) =>
      to ? `${label} → ${to}` : label,
    );

  it.each([
    ["/nonprofit-dashboard", "Dashboard", ["Harbor Relief Fund", "Dashboard"]],
    ["/nonprofit-budget", "Budget Management", ["Harbor Relief Fund", "Budget"]],
    ["/budget", "Budget Management", ["Harbor Relief Fund", "Budget"]],
    ["/team-management", "Team Management", ["Harbor Relief Fund", "Team Management"]],
    ["/nonprofit-request/1", "REQ-001", ["Harbor Relief Fund", "Requests → /nonprofit-requests", "REQ-001"]],
    [
      "/categories-management",
      "Manage Categories",
      ["Harbor Relief Fund", "Settings → /nonprofit-settings", "Manage Categories"],
    ],
    ["/notifications", "Notifications", ["Harbor Relief Fund", "Notifications"]],
    ["/notifications", null, ["Harbor Relief Fund"]],
  ])("says at %s of %s: %j", (pathname, name, expected) => {
    expect(words(pathname, name)).toEqual(expected);
  });

  it("links from a request back to the requester's list", () => {
    const items = shellMenu({ role: "requester", nonprofitRole: null }, null);
    expect(crumbsOf("Requester", items, "/request/REQ-004", "REQ-004")).toEqual([
      { label: "Requester" },
      { label: "My Requests", to: "/my-requests" },
      { label: "REQ-004" },
    ]);
  });
});
