import { zodResolver } from "@hookform/resolvers/zod";
import { fireEvent, screen, waitFor } from "@testing-library/react";
import { useForm } from "react-hook-form";
import { expect, it, vi } from "vitest";
import { z } from "zod";
import { renderScreen } from "@/testing/render";
import { Field, Form, TickField } from "./form";
import { TickLine } from "./ui/checkbox";
import { Input } from "./ui/input";

const schema = z.object({
  name: z.string().min(2, "Name is missing"),
  city: z.string().min(2, "City is missing"),
  agree: z.boolean().refine((on) => on, "You must agree"),
});

function Screen({ onSubmit, error }: { onSubmit: (values: z.infer<typeof schema>) => void; error?: unknown }) {
  const form = useForm({
    resolver: zodResolver(schema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { name: "", city: "", agree: false },
  });
  return (
    <Form form={form} onSubmit={onSubmit} error={error}>
      <Field name="name" label="Name" hint="As in your passport">
        {(control) => <Input {...control} />}
      </Field>
      <Field name="city" label="City" optional>
        {(control) => <Input {...control} />}
      </Field>
      <TickField name="agree">{(control) => <TickLine {...control}>I agree</TickLine>}</TickField>
      <button type="submit">Send</button>
    </Form>
  );
}

it("ties label, hint and error to the control", async () => {
  const { user } = renderScreen(<Screen onSubmit={vi.fn()} />);
  const name = screen.getByLabelText("Name");
  expect(name).toHaveAccessibleDescription("As in your passport");
  await user.click(name);
  await user.tab();
  expect(await screen.findByText("Name is missing")).toBeVisible();
  expect(name).toBeInvalid();
  expect(name).toHaveAccessibleDescription("As in your passport Name is missing");
});

it("shows and focuses a summary with links to the fields after a rejected submit", async () => {
  const onSubmit = vi.fn();
  const { user } = renderScreen(<Screen onSubmit={onSubmit} />);
  await user.click(screen.getByRole("button", { name: "Send" }));
  const summary = await screen.findByRole("alert");
  expect(summary).toHaveTextContent("3 answers need another look. Nothing is lost.");
  await waitFor(() => expect(summary).toHaveFocus());
  await user.click(screen.getByRole("link", { name: "City is missing" }));
  expect(screen.getByLabelText(/City/)).toHaveFocus();
  expect(onSubmit).not.toHaveBeenCalled();
});

it("focuses the field when only one error is left", async () => {
  const { user } = renderScreen(<Screen onSubmit={vi.fn()} />);
  await user.type(screen.getByLabelText("Name"), "Al");
  await user.click(screen.getByLabelText("I agree"));
  await user.click(screen.getByRole("button", { name: "Send" }));
  expect(await screen.findByText("City is missing")).toBeVisible();
  await waitFor(() => expect(screen.getByLabelText(/City/)).toHaveFocus());
});

it("submits the values and keeps them after the server's refusal", async () => {
  const onSubmit = vi.fn();
  const { user } = renderScreen(<Screen onSubmit={onSubmit} error={{ code: "42501" }} />);
  await user.type(screen.getByLabelText("Name"), "Al");
  await user.type(screen.getByLabelText(/City/), "Bo");
  await user.click(screen.getByLabelText("I agree"));
  await user.click(screen.getByRole("button", { name: "Send" }));
  await waitFor(() => expect(onSubmit.mock.calls[0]?.[0]).toEqual({ name: "Al", city: "Bo", agree: true }));
  expect(screen.getByRole("alert")).toHaveTextContent("You don't have permission to do this.");
  expect(screen.getByLabelText("Name")).toHaveValue("Al");
});

it("treats a double tap as one press and a later press as another", async () => {
  const onSubmit = vi.fn();
  const { user } = renderScreen(<Screen onSubmit={onSubmit} />);
  await user.type(screen.getByLabelText("Name"), "Al");
  await user.type(screen.getByLabelText(/City/), "Bo");
  await user.click(screen.getByLabelText("I agree"));
  const form = screen.getByRole("button", { name: "Send" }).closest("form") as HTMLFormElement;
  fireEvent.submit(form);
  fireEvent.submit(form);
  await waitFor(() => expect(onSubmit).toHaveBeenCalled());
  expect(onSubmit).toHaveBeenCalledTimes(1);
  await user.click(screen.getByRole("button", { name: "Send" }));
  await waitFor(() => expect(onSubmit).toHaveBeenCalledTimes(2));
});
