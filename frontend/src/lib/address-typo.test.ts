import { expect, it } from "vitest";
import { likelierAddress } from "./address-typo";

it.each([
  ["marie@gmial.com", "marie@gmail.com"],
  ["marie@gmai.com", "marie@gmail.com"],
  ["marie@gmaill.com", "marie@gmail.com"],
  ["Marie.D@GMAIL.CON", "Marie.D@gmail.com"],
  ["marie@gmial.con", "marie@gmail.com"],
  ["marie@gmail.co", "marie@gmail.com"],
  ["marie@gmailcom", "marie@gmail.com"],
  ["marie@hotmial.com", "marie@hotmail.com"],
  ["marie@yaho.fr", "marie@yahoo.fr"],
  [" marie@outlok.es ", "marie@outlook.es"],
])("suggests for %j %j", (typed, meant) => {
  expect(likelierAddress(typed)).toBe(meant);
});

it.each([
  "marie@gmail.com",
  "marie@mail.com",
  "marie@email.com",
  "marie@ymail.com",
  "marie@yahoo.ca",
  "marie@yahoo.com.mx",
  "marie@harbor-relief.org",
  "marie@live.com",
  "marie",
  "marie@",
  "",
])("leaves %j alone", (typed) => {
  expect(likelierAddress(typed)).toBeNull();
});
