/** Figures of the demo data, on a server where no other journey has decided or given anything. */
import { DEMO_PASSWORD } from "./fixtures/api";
import { figure } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

test.use({ onlyDemoData: true });

test("the demo donor sees the three figures of the specification", async ({ page, people }) => {
  await people.signIn(page, { email: "donor@demo.aidbridge.test", password: DEMO_PASSWORD });
  await expect(figure(page, "Total Donated")).toHaveText("$1,250");
  await expect(figure(page, "People Impacted")).toHaveText("42");
  await expect(figure(page, "Nonprofits Supported")).toHaveText("3");
});
