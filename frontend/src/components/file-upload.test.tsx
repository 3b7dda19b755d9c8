import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it, vi } from "vitest";
import { REQUEST_FILE_RULES } from "@/lib/files";
import { FileUpload } from "./file-upload";

function Chooser() {
  const [files, setFiles] = useState<File[]>([]);
  return <FileUpload files={files} onChange={setFiles} rules={{ ...REQUEST_FILE_RULES, maxFiles: 2 }} />;
}

function file(name: string, type: string, size = 1000): File {
  const made = new File(["x"], name, { type });
  Object.defineProperty(made, "size", { value: size });
  return made;
}
const pdf = (name: string, size?: number) => file(name, "application/pdf", size);

it("lists every rejected file with the reason", async () => {
  // not only what the chooser would offer: files are dropped, too
  const user = userEvent.setup({ applyAccept: false });
  render(<Chooser />);
  await user.upload(screen.getByLabelText("Documents"), [
    file("film.mov", "video/quicktime"),
    pdf("big.pdf", 10 * 1024 * 1024 + 1),
    pdf("a.pdf"),
    pdf("b.pdf"),
    pdf("c.pdf"),
  ]);
  const refused = screen.getByRole("list", { name: "Files that were not taken" });
  expect(
    within(refused)
      .getAllByRole("listitem")
      .map(({ textContent }) => textContent),
  ).toEqual([
    "film.movfilm.mov is not an accepted file type.",
    "big.pdfbig.pdf exceeds the maximum file size of 10MB.",
    "c.pdfYou can only upload a maximum of 2 files.",
  ]);
  const chosen = screen.getByRole("list", { name: "Chosen files" });
  expect(within(chosen).getAllByRole("listitem")).toHaveLength(2);

  await user.click(screen.getByRole("button", { name: "Put the note on big.pdf away" }));
  expect(within(refused).getAllByRole("listitem")).toHaveLength(2);
  await user.click(screen.getByRole("button", { name: "Remove a.pdf" }));
  // with the next choice the old reasons go
  await user.upload(screen.getByLabelText("Documents"), pdf("d.pdf"));
  expect(screen.queryByRole("list", { name: "Files that were not taken" })).toBeNull();
  expect(within(chosen).getAllByRole("listitem")[1]).toHaveTextContent("d.pdf");
});

it("opens the camera on a phone for one picture and accepts all files afterwards", async () => {
  vi.spyOn(window, "matchMedia").mockImplementation(
    (media) =>
      ({
        matches: media === "(pointer: coarse)",
        media,
        addEventListener: vi.fn(),
        removeEventListener: vi.fn(),
      }) as unknown as MediaQueryList,
  );
  render(<Chooser />);
  const input = screen.getByLabelText<HTMLInputElement>("Documents");
  const asked: (string | null)[][] = [];
  input.addEventListener("click", () => asked.push([input.getAttribute("capture"), input.accept]));
  await userEvent.click(screen.getByRole("button", { name: "Take a photo" }));
  await userEvent.click(screen.getByRole("button", { name: "Choose files" }));
  expect(asked).toEqual([
    ["environment", "image/*"],
    [null, REQUEST_FILE_RULES.accept.join(",")],
  ]);
});

it("offers no camera on devices with a mouse", () => {
  render(<Chooser />);
  expect(screen.queryByRole("button", { name: "Take a photo" })).toBeNull();
});
