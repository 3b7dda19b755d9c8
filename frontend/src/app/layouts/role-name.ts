import type { AccountRole } from "@/lib/session";
import { t } from "@/messages";

/** The account role as a word. */
export function roleName(role: AccountRole | null): string {
  switch (role) {
    case "nonprofit":
      return t("shell.roleNonprofit");
    case "donor":
      return t("shell.roleDonor");
    case "requester":
    case null:
      return t("shell.roleRequester");
  }
}
