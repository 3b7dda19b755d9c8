import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useForm } from "react-hook-form";
import { beforeEach, expect, it } from "vitest";
import { readKept, useKeptForm } from "./kept-form";

const empty = { subject: "", message: "" };

function Sample() {
  const form = useForm({ defaultValues: readKept("sample", empty) });
  const forget = useKeptForm(form, "sample");
  return (
    <form>
      <input aria-label="Subject" {...form.register("subject")} />
      <button
        type="button"
        onClick={() => {
          form.reset(empty);
          forget();
        }}
      >
        Sent
      </button>
    </form>
  );
}

beforeEach(() => sessionStorage.clear());

it("restores the values when the form is shown again, until it is sent", async () => {
  const user = userEvent.setup();
  const first = render(<Sample />);
  await user.type(screen.getByLabelText("Subject"), "Winter");
  first.unmount();

  const second = render(<Sample />);
  expect(screen.getByLabelText("Subject")).toHaveValue("Winter");
  await user.click(screen.getByText("Sent"));
  second.unmount();

  render(<Sample />);
  expect(screen.getByLabelText("Subject")).toHaveValue("");
});

it("uses the fallback when the saved values are damaged and fills in new fields", () => {
  sessionStorage.setItem("kept-form:sample", "{");
  expect(readKept("sample", empty)).toEqual(empty);
  sessionStorage.setItem("kept-form:sample", '{"subject":"Hi"}');
  expect(readKept("sample", empty)).toEqual({ subject: "Hi", message: "" });
});
