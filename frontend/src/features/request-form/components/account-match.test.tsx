import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import Toaster from "@/components/ui/toaster";
import { sendAddressCode } from "@/lib/address-code";
import { renderScreen } from "@/testing/render";
import { AccountMatch } from "./account-match";

vi.mock("@/lib/address-code", () => ({ sendAddressCode: vi.fn(), checkAddressCode: vi.fn() }));

it("reports why it cannot check whether an account uses the email", async () => {
  vi.mocked(sendAddressCode).mockRejectedValue({ code: "over_request_rate_limit", message: "slow down" });
  renderScreen(
    <>
      <AccountMatch email="marie@mail.example" onChoose={vi.fn()} onLeave={vi.fn()} />
      <Toaster />
    </>,
  );
  expect(await screen.findByText("Error checking for existing users")).toBeVisible();
  expect(screen.getByText("Too many tries. Wait a moment and try again.")).toBeVisible();
  expect(sendAddressCode).toHaveBeenCalledWith("marie@mail.example");
});
