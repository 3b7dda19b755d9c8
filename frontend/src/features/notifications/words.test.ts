import { afterEach, expect, it } from "vitest";
import { formatDate } from "@/lib/format";
import { translate, translateMore } from "@/messages/translate";
import { notificationWords } from "./words";

const approved = {
  title: "Request Approved",
  message: "Harbor Relief Fund approved REQ-002 for $100.",
  code: "approved",
  params: { nonprofit: "Harbor Relief Fund", number: "REQ-002", amount: 100 },
};

afterEach(() => translate("en"));

it("shows English notifications as stored", () => {
  expect(notificationWords(approved)).toEqual({ title: approved.title, message: approved.message });
});

it("translates notifications with money, kinds of help and numbers", async () => {
  await translate("es");
  await translateMore("es", "rest");
  expect(notificationWords(approved).title).toBe("Solicitud aprobada");
  expect(notificationWords(approved).message).toContain("Harbor Relief Fund aprobó REQ-002 por ");
  const sent = { ...approved, code: "sent", params: { number: "REQ-009", category: "Rent Support" } };
  expect(notificationWords(sent).message).toBe("Tu solicitud REQ-009 (Ayuda con el alquiler) va en camino.");
  const unanswered = { ...approved, code: "unanswered", params: { number: "REQ-009", date: "2026-08-05" } };
  expect(notificationWords(unanswered).message).toContain(`Se borra el ${formatDate("2026-08-05")}.`);
  const pledged = { ...approved, code: "pledged", params: { amount: 40, donor: "" } };
  expect(notificationWords(pledged).message).toMatch(/^Un donante /);
  const open = (count: number) => notificationWords({ ...approved, code: "couldNotHelp", params: { count } }).message;
  expect(open(1)).toContain("1 organización más");
  expect(open(2)).toContain("2 organizaciones más");
});

it("leaves user text and unknown notifications unchanged", async () => {
  await translate("fr");
  await translateMore("fr", "rest");
  const words = { title: "Winter pantry", message: "It opens on Monday." };
  expect(notificationWords({ ...words, code: null, params: null })).toEqual(words);
  expect(notificationWords({ ...words, code: "unheardOf", params: [1] })).toEqual(words);
});
