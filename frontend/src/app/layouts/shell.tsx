/** The shell of the working pages: sidebar from 768 px, below it a tab bar and the menu sheet. */
import { useQuery } from "@tanstack/react-query";
import { Bell, CircleUserRound, LogOut, Menu, PanelLeft } from "lucide-react";
import { useState } from "react";
import { Link, NavLink, Outlet, ScrollRestoration, useLocation } from "react-router-dom";
import { Logo } from "@/components/logo";
import { Avatar } from "@/components/ui/avatar";
import { Button } from "@/components/ui/button";
import { Sheet, SheetContent } from "@/components/ui/sheet";
import { useSidebarFold } from "@/components/ui/sidebar";
import { Tooltip, TooltipProvider } from "@/components/ui/tooltip";
import { incomingCountsQuery } from "@/features/incoming-requests/api";
import { useUnreadCount } from "@/features/notifications/api";
import { usePageName } from "@/lib/page-title";
import { can, useSession, type AppUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/shell";
import { paths } from "../paths";
import { FocusOnNavigation } from "./focus";
import { LanguageMenu, ThemeMenu } from "./header-menus";
import { LiveNote, useLiveUpdates } from "./live";
import { roleName } from "./role-name";
import { crumbsOf, isCurrent, shellMenu, type MenuItem } from "./shell-menu";
import { TranslationNote } from "./translation-note";
import { useLogout } from "./use-logout";

/** Requests that wait for a decision of this person; 0 for those who do not decide. */
function useWaiting(): number {
  const session = useSession();
  const decides = can(session, "act_on_requests");
  const { data } = useQuery({ ...incomingCountsQuery(session.organization?.id ?? ""), enabled: decides });
  return (decides && data?.due) || 0;
}

interface MenuListProps {
  items: MenuItem[];
  folded?: boolean;
  onNavigate?: () => void;
}

function MenuList({ items, folded, onNavigate }: MenuListProps) {
  const { pathname } = useLocation();
  const waiting = useWaiting();
  return (
    <nav aria-label={t("shell.menu")}>
      <ul>
        {items.map((item) => (
          <li key={item.to}>
            <Tooltip label={item.label} disabled={!folded}>
              <Link to={item.to} aria-current={isCurrent(item, pathname) ? "page" : undefined} onClick={onNavigate}>
                <item.Icon aria-hidden="true" />
                <span className="words">{item.label}</span>
                {item.to === paths.nonprofitRequests && waiting > 0 ? (
                  <span className="count hot">
                    <span aria-hidden="true">{waiting}</span>
                    <span className="visually-hidden">{t("shell.waiting", { count: waiting })}</span>
                  </span>
                ) : null}
              </Link>
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
        <Avatar name={user.fullName} src={user.photoUrl} initials />
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

function Breadcrumb({ items }: { items: MenuItem[] }) {
  const { user, organization } = useSession();
  const { pathname } = useLocation();
  const name = usePageName();
  const crumbs = crumbsOf(organization?.name ?? roleName(user?.role ?? null), items, pathname, name);
  return (
    <nav className="crumbs" aria-label={t("shell.breadcrumb")}>
      <ol>
        {crumbs.map(({ label, to }, index) => (
          <li key={`${index} ${label}`} aria-current={index > 0 && index === crumbs.length - 1 ? "page" : undefined}>
            {to ? <Link to={to}>{label}</Link> : label}
          </li>
        ))}
      </ol>
    </nav>
  );
}

function TopBar({
  user,
  items,
  folded,
  onFold,
  onMenu,
}: {
  user: AppUser;
  items: MenuItem[];
  folded: boolean;
  onFold: () => void;
  onMenu: () => void;
}) {
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
      <Breadcrumb items={items} />
      <LanguageMenu />
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
  const { pathname } = useLocation();
  useLiveUpdates(user, organization);
  if (!user) {
    // The guard inside shows the loading state or the reason for a failure.
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
        <TopBar user={user} items={items} folded={folded} onFold={toggle} onMenu={() => setMenuOpen(true)} />
        <div className="page">
          <LiveNote />
          <Outlet />
          <TranslationNote className="small faint no-print mt-8 max-w-[75ch] px-(--space-gutter) pb-6" />
        </div>
        <nav className="thumb" aria-label={t("shell.mainNav")}>
          {items.slice(0, 4).map((item) => (
            <Link key={item.to} to={item.to} aria-current={isCurrent(item, pathname) ? "page" : undefined}>
              <item.Icon aria-hidden="true" />
              {item.short ?? item.label}
            </Link>
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
