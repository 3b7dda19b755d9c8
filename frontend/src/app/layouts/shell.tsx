/** The shell of the working pages: sidebar from 768 px, below it a tab bar and the menu sheet. */
import { Bell, CircleUserRound, LogOut, Menu, PanelLeft } from "lucide-react";
import { useState } from "react";
import { Link, NavLink, Outlet, ScrollRestoration } from "react-router-dom";
import { Logo } from "@/components/logo";
import { Avatar } from "@/components/ui/avatar";
import { Button } from "@/components/ui/button";
import { Sheet, SheetContent } from "@/components/ui/sheet";
import { useSidebarFold } from "@/components/ui/sidebar";
import { Tooltip, TooltipProvider } from "@/components/ui/tooltip";
import { useUnreadCount } from "@/features/notifications/api";
import { useSession, type AppUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/shell";
import { paths } from "../paths";
import { FocusOnNavigation } from "./focus";
import { ThemeMenu } from "./header-menus";
import { roleName } from "./role-name";
import { shellMenu, type MenuItem } from "./shell-menu";
import { useLogout } from "./use-logout";

function MenuList({ items, folded, onNavigate }: { items: MenuItem[]; folded?: boolean; onNavigate?: () => void }) {
  return (
    <nav aria-label={t("shell.menu")}>
      <ul>
        {items.map(({ to, label, Icon }) => (
          <li key={to}>
            <Tooltip label={label} disabled={!folded}>
              <NavLink to={to} onClick={onNavigate}>
                <Icon aria-hidden="true" />
                <span className="words">{label}</span>
              </NavLink>
            </Tooltip>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Me({ user, folded, onNavigate }: { user: AppUser; folded?: boolean; onNavigate?: () => void }) {
  const unread = useUnreadCount(user.id);
  const logout = useLogout();
  return (
    <div className="me">
      <div className="who">
        <Avatar name={user.fullName} src={user.photoUrl} />
        <div>
          <span>
            <strong>{user.fullName || user.email}</strong>
          </span>
          <span className="faint">{user.email}</span>
        </div>
      </div>
      <ul>
        <li>
          <Tooltip label={t("shell.profile")} disabled={!folded}>
            <NavLink to={paths.profile} onClick={onNavigate}>
              <CircleUserRound aria-hidden="true" />
              <span className="words">{t("shell.profile")}</span>
            </NavLink>
          </Tooltip>
        </li>
        <li>
          <Tooltip label={t("shell.notifications")} disabled={!folded}>
            <NavLink to={paths.notifications} onClick={onNavigate}>
              <Bell aria-hidden="true" />
              <span className="words">{t("shell.notifications")}</span>
              {unread > 0 ? (
                <span className="count">
                  <span aria-hidden="true">{unread}</span>
                  <span className="visually-hidden">{t("shell.unread", { count: unread })}</span>
                </span>
              ) : null}
            </NavLink>
          </Tooltip>
        </li>
        <li>
          <Tooltip label={t("shell.logout")} disabled={!folded}>
            <button type="button" onClick={() => void logout()}>
              <LogOut aria-hidden="true" />
              <span className="words">{t("shell.logout")}</span>
            </button>
          </Tooltip>
        </li>
      </ul>
    </div>
  );
}

function TopBar({
  user,
  folded,
  onFold,
  onMenu,
}: {
  user: AppUser;
  folded: boolean;
  onFold: () => void;
  onMenu: () => void;
}) {
  const { organization } = useSession();
  const unread = useUnreadCount(user.id);
  return (
    <header className="topbar">
      <Logo />
      <Button
        size="icon"
        className="fold"
        aria-label={t(folded ? "shell.unfoldSidebar" : "shell.foldSidebar")}
        aria-expanded={!folded}
        onClick={onFold}
      >
        <PanelLeft aria-hidden="true" />
      </Button>
      <p className="crumbs">{organization?.name ?? roleName(user.role)}</p>
      <ThemeMenu />
      <Button asChild size="icon" className="bell">
        <Link
          to={paths.notifications}
          aria-label={unread > 0 ? t("shell.notificationsUnread", { count: unread }) : t("shell.notifications")}
        >
          <Bell aria-hidden="true" />
          {unread > 0 ? <b aria-hidden="true">{unread > 99 ? "99+" : unread}</b> : null}
        </Link>
      </Button>
      <Button size="icon" className="menu" aria-label={t("shell.menu")} onClick={onMenu}>
        <Menu aria-hidden="true" />
      </Button>
    </header>
  );
}

export function Component() {
  const { user, organization } = useSession();
  const [folded, toggle] = useSidebarFold();
  const [menuOpen, setMenuOpen] = useState(false);
  if (!user) {
    // The guard inside shows what it waits for, or why it cannot go on.
    return <Outlet />;
  }
  const items = shellMenu(user, organization);
  return (
    <TooltipProvider>
      <a className="skip" href="#main">
        {t("common.skip")}
      </a>
      <div className="shell" data-folded={folded}>
        <aside className="side" aria-label={t("shell.sidebar")}>
          <div className="side-in">
            <Logo />
            <MenuList items={items} folded={folded} />
            <Me user={user} folded={folded} />
          </div>
        </aside>
        <TopBar user={user} folded={folded} onFold={toggle} onMenu={() => setMenuOpen(true)} />
        <div className="page">
          <Outlet />
        </div>
        <nav className="thumb" aria-label={t("shell.mainNav")}>
          {items.slice(0, 4).map(({ to, label, Icon }) => (
            <NavLink key={to} to={to}>
              <Icon aria-hidden="true" />
              {label}
            </NavLink>
          ))}
        </nav>
      </div>
      <Sheet open={menuOpen} onOpenChange={setMenuOpen}>
        <SheetContent title={t("shell.menu")}>
          <MenuList items={items} onNavigate={() => setMenuOpen(false)} />
          <Me user={user} onNavigate={() => setMenuOpen(false)} />
        </SheetContent>
      </Sheet>
      <FocusOnNavigation />
      <ScrollRestoration />
    </TooltipProvider>
  );
}
