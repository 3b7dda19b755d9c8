import { describe, expect, it } from "vitest";
import { toCsv } from "./csv";

describe("toCsv", () => {
  it("writes header and rows with CRLF", () => {
    expect(toCsv(["Request ID", "Amount"], [["REQ-001", 250]])).toBe("Request ID,Amount\r\nREQ-001,250\r\n");
  });

  it.each([
    ["a comma", "Désir, Marie", '"Désir, Marie"'],
    ["quotes", 'the "old" house', '"the ""old"" house"'],
    ["a line break", "one\ntwo", '"one\ntwo"'],
    ["nothing", null, ""],
    ["an empty text", "", ""],
    ["zero", 0, "0"],
    ["a negative number", -5, "-5"],
  ])("writes %s", (_, value, expected) => {
    expect(toCsv(["h"], [[value]])).toBe(`h\r\n${expected}\r\n`);
  });

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\tx"])("defuses the formula %j", (text) => {
    expect(toCsv(["h"], [[text]])).toBe(`h\r\n'${text}\r\n`);
  });

  it("escapes and quotes a formula with a comma", () => {
    expect(toCsv(["h"], [['=HYPERLINK("x","y")']])).toBe('h\r\n"\'=HYPERLINK(""x"",""y"")"\r\n');
  });
});
