import { Menu } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { Link, NavLink } from "react-router-dom";
import { Logo } from "@/components/logo";
import { Button } from "@/components/ui/button";
import { useSession } from "@/lib/session";
import { t } from "@/messages";
import { paths } from "../paths";
import { AccountMenu, LanguageMenu, ThemeMenu } from "./header-menus";
import { mainNav } from "./main-nav";

const MobileMenu = lazy(() => import("./mobile-menu"));

export function SiteHeader() {
  const { status, user } = useSession();
  const [open, setOpen] = useState(false);
  return (
    <header className="site-header">
      <div className="wrap">
        <Logo />
        <nav className="site-nav" aria-label={t("shell.mainNav")}>
          {mainNav().map(([to, label]) => (
            <NavLink key={to} to={to} end={to === paths.home}>
              {label}
            </NavLink>
          ))}
        </nav>
        <div className="site-tools">
          <LanguageMenu />
          <ThemeMenu />
          {user ? (
            <AccountMenu user={user} />
          ) : status === "signed-out" ? (
            <Button asChild className="login">
              <Link to={paths.login}>{t("shell.login")}</Link>
            </Button>
          ) : null}
          <Button
            size="icon"
            className="menu"
            aria-label={t("shell.menu")}
            aria-expanded={open}
            onClick={() => setOpen(true)}
          >
            <Menu aria-hidden="true" />
          </Button>
          {open ? (
            <Suspense>
              <MobileMenu onClose={() => setOpen(false)} />
            </Suspense>
          ) : null}
        </div>
      </div>
    </header>
  );
}
