import { Link } from "react-router-dom";
import { t } from "@/messages";

/** The mark (a cable-stayed bridge, its pylon the A) and the word. */
export function Logo() {
  return (
    <Link className="brand" to="/" aria-label={t("common.logoLabel")}>
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <path className="mk" d="M16 3.2 3 21.5M16 3.2 29 21.5" strokeWidth="1.7" />
        <path className="mk" d="M16 3.2 9.2 28.5M16 3.2l6.8 25.3" strokeWidth="3.3" />
        <path className="mw" d="M1.5 21.5h29" strokeWidth="3.3" />
      </svg>
      <span>
        Aid<b>Bridge</b>
      </span>
    </Link>
  );
}
