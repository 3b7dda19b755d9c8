import { useNavigate } from "react-router-dom";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import { paths } from "../paths";

/** Ends the session, says so, and leads to the login page. */
export function useLogout(): () => Promise<void> {
  const { signOut } = useSession();
  const navigate = useNavigate();
  return async () => {
    try {
      await signOut();
      toast({ title: t("shell.loggedOut"), description: t("shell.loggedOutBody") });
      await navigate(paths.login);
    } catch {
      toast({ variant: "destructive", title: t("shell.logoutFailed"), description: t("shell.logoutFailedBody") });
    }
  };
}
