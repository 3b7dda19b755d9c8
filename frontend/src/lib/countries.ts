/**
 * The world's countries from `Intl` (ISO 3166-1 codes): stored by their English names, shown in the reader's language.
 */
import { currentLocale, intlLocale } from "@/messages/locale";

const CODES =
  "AD AE AF AG AI AL AM AO AR AT AU AW AZ BA BB BD BE BF BG BH BI BJ BM BN BO BR BS BT BW BY BZ CA CD CF CG CH CI CL CM CN CO CR CU CV CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FM FR GA GB GD GE GH GM GN GQ GR GT GW GY HN HR HT HU ID IE IL IN IQ IR IS IT JM JO JP KE KG KH KI KM KN KP KR KW KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MG MH MK ML MM MN MR MT MU MV MW MX MY MZ NA NE NG NI NL NO NP NR NZ OM PA PE PG PH PK PL PR PS PT PW PY QA RO RS RU RW SA SB SC SD SE SG SI SK SL SM SN SO SR SS ST SV SY SZ TD TG TH TJ TL TM TN TO TR TT TV TW TZ UA UG US UY UZ VA VC VE VN VU WS XK YE ZA ZM ZW";

/** `Intl` writes the names in French for Haitian Creole. These have an everyday one. */
const CREOLE: Readonly<Record<string, string>> = {
  BR: "Brezil",
  BS: "Bayamas",
  CA: "Kanada",
  CL: "Chili",
  CU: "Kiba",
  DO: "Repiblik Dominikèn",
  FR: "Frans",
  HT: "Ayiti",
  JM: "Jamayik",
  MX: "Meksik",
  US: "Etazini",
};

/** Sorted by the shown name; the value is the English name. */
export function countryOptions(): { value: string; label: string }[] {
  const english = new Intl.DisplayNames("en-US", { type: "region" });
  const shown = new Intl.DisplayNames(intlLocale(), { type: "region" });
  const own = currentLocale() === "ht" ? CREOLE : {};
  return CODES.split(" ")
    .map((code) => ({ value: english.of(code) ?? code, label: own[code] ?? shown.of(code) ?? code }))
    .sort((a, b) => a.label.localeCompare(b.label, intlLocale()));
}
