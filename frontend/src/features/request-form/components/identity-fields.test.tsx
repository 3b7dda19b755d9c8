import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useForm } from "react-hook-form";
import { expect, it, vi } from "vitest";
import { Form } from "@/components/form";
import { contactFields, personalFields } from "../schema";
import { IdentityFields } from "./info-step";

function Contact({ onSend }: { onSend: (values: object) => void }) {
  const form = useForm({ defaultValues: { address: "", city: "Portland", state: "ME", postalCode: "" } });
  return (
    <Form form={form} onSubmit={onSend}>
      <IdentityFields fields={contactFields} />
      <button type="submit">Send</button>
    </Form>
  );
}

it("accepts only a town from a requester without a fixed address and restores the street afterwards", async () => {
  const onSend = vi.fn();
  const user = userEvent.setup();
  render(<Contact onSend={onSend} />);
  await user.click(screen.getByRole("checkbox", { name: "I have no fixed address" }));
  expect(screen.queryByLabelText("Street address")).toBeNull();
  expect(screen.queryByLabelText("Postal/ZIP code")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Send" }));
  expect(onSend.mock.lastCall?.[0]).toEqual({
    address: "No fixed address",
    city: "Portland",
    state: "ME",
    postalCode: "none",
  });

  await user.click(screen.getByRole("checkbox", { name: "I have no fixed address" }));
  expect(screen.getByLabelText("Street address")).toHaveValue("");
  await user.type(screen.getByLabelText("Street address"), "12 Wharf Street");
  await user.type(screen.getByLabelText("Postal/ZIP code"), "04101");
  await user.click(screen.getByRole("button", { name: "Send" }));
  expect(onSend.mock.lastCall?.[0]).toMatchObject({ address: "12 Wharf Street", postalCode: "04101" });
});

function Personal({ readOnlyEmail }: { readOnlyEmail?: boolean }) {
  const form = useForm({ mode: "onTouched", defaultValues: { firstName: "", lastName: "", email: "", phone: "" } });
  return (
    <Form form={form} onSubmit={() => undefined}>
      <IdentityFields fields={personalFields} readOnlyEmail={readOnlyEmail} />
    </Form>
  );
}

it("suggests a correction for an email that looks mistyped", async () => {
  const user = userEvent.setup();
  render(<Personal />);
  const email = screen.getByLabelText("Email");
  await user.type(email, "marie@gmial.com");
  expect(screen.queryByText(/Did you mean/)).toBeNull();
  await user.tab();
  expect(screen.getByRole("status")).toHaveTextContent("Did you mean marie@gmail.com?");
  await user.click(screen.getByRole("button", { name: "Yes, change it" }));
  expect(email).toHaveValue("marie@gmail.com");
  expect(screen.queryByText(/Did you mean/)).toBeNull();
});

it("suggests no correction for an account's email", async () => {
  const user = userEvent.setup();
  render(<Personal readOnlyEmail />);
  await user.click(screen.getByLabelText("Email"));
  await user.tab();
  expect(screen.queryByRole("status")).toBeNull();
});
