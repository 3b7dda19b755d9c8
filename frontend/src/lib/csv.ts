/** Tables as CSV (RFC 4180) for spreadsheet programs. */
import { saveFile } from "./save-file";

/** The start of a spreadsheet formula. Such cells get an apostrophe, because their text comes from strangers. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One line per row, CRLF between, the first line the heads. */
export function toCsv(
  heads: readonly string[],
  rows: readonly (readonly (string | number | null | undefined)[])[],
): string {
  return [heads, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** Downloads a CSV; the byte order mark makes Excel read it as UTF-8. */
export function downloadCsv(fileName: string, csv: string): void {
  saveFile(fileName, ["\uFEFF", csv], "text/csv;charset=utf-8");
}
