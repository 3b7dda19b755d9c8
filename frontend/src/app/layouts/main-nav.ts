import { t } from "@/messages";
import { paths } from "../paths";

/** The main navigation: paths and labels. */
export const mainNav = () =>
  [
    [paths.home, t("shell.navHome")],
    [paths.howItWorks, t("shell.navHowItWorks")],
    [paths.forNonprofits, t("shell.navForNonprofits")],
    [paths.aboutUs, t("shell.navAboutUs")],
    [paths.resourceLibrary, t("shell.navResources")],
  ] as const;
