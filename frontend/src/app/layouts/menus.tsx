/** The menus of the header's buttons. They open at once, because pressing the button caused the download. */
import { QueryClientProvider } from "@tanstack/react-query";
import { Bell, CircleUserRound, LayoutDashboard, LogOut, Monitor, Moon, Sun } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { Avatar } from "@/components/ui/avatar";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuLabel,
  DropdownMenuRadioGroup,
  DropdownMenuRadioItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/components/ui/dropdown-menu";
import { useUnreadCount } from "@/features/notifications/api";
import { queryClient } from "@/lib/query-client";
import type { AppUser } from "@/lib/session";
import { setTheme, useTheme, type Theme } from "@/lib/theme";
import { t } from "@/messages";
import { currentLocale, keepLocale, knownLocale, localeNames, locales, type Locale } from "@/messages/locale";
import { paths } from "../paths";
import { roleName } from "./role-name";
import { useLogout } from "./use-logout";

/** Changing the language reloads the page, because texts are read while modules load. Typed answers are kept. */
function changeLanguage(locale: Locale) {
  keepLocale(locale);
  const here = new URL(window.location.href);
  here.searchParams.delete("lang");
  if (here.href === window.location.href) window.location.reload();
  else window.location.replace(here);
}

export function LanguageItems({ children }: { children: ReactNode }) {
  return (
    <DropdownMenu defaultOpen modal={false}>
      <DropdownMenuTrigger asChild>{children}</DropdownMenuTrigger>
      <DropdownMenuContent aria-label={t("shell.language")}>
        <DropdownMenuRadioGroup
          value={currentLocale()}
          onValueChange={(value) => {
            const locale = knownLocale(value);
            if (locale) changeLanguage(locale);
          }}
        >
          {locales.map((locale) => (
            <DropdownMenuRadioItem key={locale} value={locale} lang={locale}>
              {localeNames[locale]}
            </DropdownMenuRadioItem>
          ))}
        </DropdownMenuRadioGroup>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

export function ThemeItems({ children }: { children: ReactNode }) {
  const theme = useTheme();
  return (
    <DropdownMenu defaultOpen modal={false}>
      <DropdownMenuTrigger asChild>{children}</DropdownMenuTrigger>
      <DropdownMenuContent aria-label={t("shell.theme")}>
        <DropdownMenuRadioGroup value={theme} onValueChange={(value) => setTheme(value as Theme)}>
          <DropdownMenuRadioItem value="light">
            <Sun aria-hidden="true" />
            {t("shell.themeLight")}
          </DropdownMenuRadioItem>
          <DropdownMenuRadioItem value="dark">
            <Moon aria-hidden="true" />
            {t("shell.themeDark")}
          </DropdownMenuRadioItem>
          <DropdownMenuRadioItem value="system">
            <Monitor aria-hidden="true" />
            {t("shell.themeSystem")}
          </DropdownMenuRadioItem>
        </DropdownMenuRadioGroup>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

/** The header is on static pages too, so its menu brings the query cache along. */
export function AccountItems(props: { user: AppUser; children: ReactNode }) {
  return (
    <QueryClientProvider client={queryClient}>
      <AccountMenuItems {...props} />
    </QueryClientProvider>
  );
}

function AccountMenuItems({ user, children }: { user: AppUser; children: ReactNode }) {
  const unread = useUnreadCount(user.id);
  const logout = useLogout();
  return (
    <DropdownMenu defaultOpen modal={false}>
      <DropdownMenuTrigger asChild>{children}</DropdownMenuTrigger>
      <DropdownMenuContent className="min-w-[15rem]">
        <DropdownMenuLabel className="flex items-center gap-3">
          <Avatar name={user.fullName} src={user.photoUrl} />
          <span className="min-w-0">
            <strong className="block truncate">{user.fullName || user.email}</strong>
            <span className="small faint">{roleName(user.role)}</span>
          </span>
        </DropdownMenuLabel>
        <DropdownMenuSeparator />
        <DropdownMenuItem asChild>
          <Link to={paths.dashboard}>
            <LayoutDashboard aria-hidden="true" />
            {t("shell.menuDashboard")}
          </Link>
        </DropdownMenuItem>
        <DropdownMenuItem asChild>
          <Link to={paths.profile}>
            <CircleUserRound aria-hidden="true" />
            {t("shell.profile")}
          </Link>
        </DropdownMenuItem>
        <DropdownMenuItem asChild>
          <Link to={paths.notifications}>
            <Bell aria-hidden="true" />
            {t("shell.notifications")}
            {unread > 0 ? (
              <span className="count end" aria-label={t("shell.unread", { count: unread })}>
                {unread}
              </span>
            ) : null}
          </Link>
        </DropdownMenuItem>
        <DropdownMenuItem onSelect={() => void logout()}>
          <LogOut aria-hidden="true" />
          {t("shell.logout")}
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}
