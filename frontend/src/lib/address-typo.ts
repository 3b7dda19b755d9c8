/**
 * A likelier email address than the typed one: 'marie@gmial.con' → 'marie@gmail.com'. Without an account the address is the only way to an
 * answer, and a mistyped one loses it for ever. A suggestion only: domains that we do not know are most often right.
 */

/** Where most people have their mail, and where it differs from one of these by a letter. */
const DOMAINS = [
  "gmail.com",
  "yahoo.com",
  "hotmail.com",
  "outlook.com",
  "icloud.com",
  "yahoo.fr",
  "yahoo.es",
  "hotmail.fr",
  "hotmail.es",
  "outlook.fr",
  "outlook.es",
  "orange.fr",
];
const OTHERS = new Set(["mail.com", "email.com", "ymail.com", "gmx.com", "yahoo.ca", "yahoo.co"]);

/** Whether one letter too many, too few, another one, or two that changed places make `typed` of `meant`. */
function isNear(typed: string, meant: string): boolean {
  if (Math.abs(typed.length - meant.length) > 1) return false;
  let start = 0;
  while (start < typed.length && typed[start] === meant[start]) start += 1;
  const [left, right] = [typed.slice(start), meant.slice(start)];
  return (
    left.slice(1) === right.slice(1) ||
    left.slice(1) === right ||
    left === right.slice(1) ||
    (left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2))
  );
}

/** Null if nothing is likelier. */
export function likelierAddress(typed: string): string | null {
  const [, name, written] = /^([^@\s]+)@([^@\s]+)$/.exec(typed.trim()) ?? [];
  const domain = written?.toLowerCase();
  if (!name || !domain || DOMAINS.includes(domain) || OTHERS.has(domain)) return null;
  // '.con' and '.cmo' lie beside another mistake often enough
  const candidates = [domain, domain.replace(/\.(?:con|cmo|ocm|comm|vom|xom|om|cm|co)$/, ".com")];
  const meant = candidates.map((one) => DOMAINS.find((known) => one === known || isNear(one, known))).find(Boolean);
  return meant ? `${name}@${meant}` : null;
}
