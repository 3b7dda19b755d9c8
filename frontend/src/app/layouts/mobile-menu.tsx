import { Link, NavLink } from "react-router-dom";
import { Button } from "@/components/ui/button";
import { Sheet, SheetContent } from "@/components/ui/sheet";
import { useSession } from "@/lib/session";
import { t } from "@/messages";
import { paths } from "../paths";
import { mainNav } from "./main-nav";

/** The main navigation on small screens. */
export default function MobileMenu({ onClose }: { onClose: () => void }) {
  const { status } = useSession();
  return (
    <Sheet open onOpenChange={(open) => (open ? undefined : onClose())}>
      <SheetContent title={t("shell.menu")}>
        <nav aria-label={t("shell.mainNav")} className="mt-2">
          <ul>
            {mainNav().map(([to, label]) => (
              <li key={to}>
                <NavLink to={to} end={to === paths.home} onClick={onClose}>
                  {label}
                </NavLink>
              </li>
            ))}
          </ul>
        </nav>
        {status === "signed-out" ? (
          <div className="mt-4 grid gap-3 border-t border-line p-3 pt-4">
            <Button asChild variant="primary" full onClick={onClose}>
              <Link to={paths.login}>{t("shell.login")}</Link>
            </Button>
            <Button asChild full onClick={onClose}>
              <Link to={paths.signup}>{t("shell.signUp")}</Link>
            </Button>
          </div>
        ) : null}
      </SheetContent>
    </Sheet>
  );
}
