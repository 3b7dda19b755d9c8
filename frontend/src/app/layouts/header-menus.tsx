/**
 * The header's two menus. The buttons are part of the first paint; the menus (Radix and its
 * positioning) are downloaded when a button is first touched.
 */
import { Languages, SunMoon } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { Avatar } from "@/components/ui/avatar";
import { Button } from "@/components/ui/button";
import type { AppUser } from "@/lib/session";
import { useTheme } from "@/lib/theme";
import { t } from "@/messages";
import { currentLocale, localeNames } from "@/messages/locale";

const loadMenus = () => import("./menus");
const LanguageItems = lazy(() => loadMenus().then((module) => ({ default: module.LanguageItems })));
const ThemeItems = lazy(() => loadMenus().then((module) => ({ default: module.ThemeItems })));
const AccountItems = lazy(() => loadMenus().then((module) => ({ default: module.AccountItems })));

const themeNames = {
  light: "shell.themeLight",
  dark: "shell.themeDark",
  system: "shell.themeSystem",
} as const;

function useLazyMenu() {
  const [wanted, setWanted] = useState(false);
  return {
    wanted,
    button: {
      "aria-haspopup": "menu",
      onPointerEnter: () => void loadMenus(),
      onFocus: () => void loadMenus(),
      onClick: () => setWanted(true),
    } as const,
  };
}

export function LanguageMenu() {
  const { wanted, button } = useLazyMenu();
  const trigger = (
    <Button
      size="icon"
      aria-label={t("shell.languageNow", { language: localeNames[currentLocale()] })}
      {...(wanted ? {} : button)}
    >
      <Languages aria-hidden="true" />
    </Button>
  );
  return wanted ? (
    <Suspense fallback={trigger}>
      <LanguageItems>{trigger}</LanguageItems>
    </Suspense>
  ) : (
    trigger
  );
}

export function ThemeMenu() {
  const theme = useTheme();
  const { wanted, button } = useLazyMenu();
  const trigger = (
    <Button size="icon" aria-label={t("shell.themeNow", { theme: t(themeNames[theme]) })} {...(wanted ? {} : button)}>
      <SunMoon aria-hidden="true" />
    </Button>
  );
  return wanted ? (
    <Suspense fallback={trigger}>
      <ThemeItems>{trigger}</ThemeItems>
    </Suspense>
  ) : (
    trigger
  );
}

export function AccountMenu({ user }: { user: AppUser }) {
  const { wanted, button } = useLazyMenu();
  const trigger = (
    <Button
      size="icon"
      aria-label={t("shell.account", { name: user.fullName || user.email })}
      {...(wanted ? {} : button)}
    >
      <Avatar name={user.fullName} src={user.photoUrl} />
    </Button>
  );
  return wanted ? (
    <Suspense fallback={trigger}>
      <AccountItems user={user}>{trigger}</AccountItems>
    </Suspense>
  ) : (
    trigger
  );
}
