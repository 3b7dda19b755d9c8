import { toCsv } from "@/lib/csv";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/incoming";
import type { IncomingRow } from "./types";

const statusWord = (status: IncomingRow["status"]) =>
  status === "taken" ? t("incoming.taken") : t(`common.status.${status}`);

/** The list as a table for a spreadsheet; dates as yyyy-mm-dd (UTC), amounts as plain dollars, no personal data. */
export const incomingCsv = (rows: readonly IncomingRow[]): string =>
  toCsv(
    [
      t("incoming.csvId"),
      t("incoming.csvCategory"),
      t("incoming.csvDate"),
      t("incoming.csvAmount"),
      t("incoming.csvStatus"),
      t("incoming.csvNeedsProof"),
      t("incoming.csvApproved"),
    ],
    rows.map((row) => [
      row.request_number,
      localName(row.category),
      row.submitted_at.slice(0, 10),
      row.amount_requested,
      statusWord(row.status),
      t(row.needs_more_proof ? "common.yes" : "common.no"),
      row.amount_approved,
    ]),
  );
