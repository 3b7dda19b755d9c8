import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import { SearchField } from "./search-field";

/** The URL shows the requested search when the test lets it. */
function Sample({ asked }: { asked: string[] }) {
  const [value, setValue] = useState("");
  return (
    <>
      <SearchField aria-label="Search" value={value} onSearch={(words) => asked.push(words)} restMs={0} />
      <button type="button" onClick={() => setValue(asked.shift() ?? "")}>
        Arrives
      </button>
      <button type="button" onClick={() => setValue("")}>
        Clear
      </button>
    </>
  );
}

it("keeps letters typed while an earlier search is running", async () => {
  const user = userEvent.setup();
  const asked: string[] = [];
  render(<Sample asked={asked} />);
  const field = screen.getByLabelText("Search");
  await user.click(field);
  await user.paste("ab");
  await waitFor(() => expect(asked).toEqual(["ab"]));
  await user.paste("c");
  await waitFor(() => expect(asked.at(-1)).toBe("abc"));
  // the URL shows 'ab' only now, when the field has moved on
  await user.click(screen.getByText("Arrives"));
  expect(field).toHaveValue("abc");
  // and its next search is still pending
  await waitFor(() => expect(asked.at(-1)).toBe("abc"));
});

it("follows the URL when it changes without typing", async () => {
  const user = userEvent.setup();
  const asked: string[] = [];
  render(<Sample asked={asked} />);
  const field = screen.getByLabelText("Search");
  await user.click(field);
  await user.paste("rent");
  await waitFor(() => expect(asked).toEqual(["rent"]));
  await user.click(screen.getByText("Arrives"));
  expect(field).toHaveValue("rent");
  await user.click(screen.getByText("Clear"));
  expect(field).toHaveValue("");
});
