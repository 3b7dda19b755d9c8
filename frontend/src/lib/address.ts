/**
 * The stored values for a person without a fixed address, in English, because the database requires a street and a
 * code.
 */
import { localName } from "./local-name";

export const NO_ADDRESS = "No fixed address";
export const NO_POSTAL_CODE = "none";

/** The lines of an address as people read it. */
export const addressLines = (street: string, city: string, state: string, postalCode: string): [string, string] =>
  street === NO_ADDRESS ? [localName(street), `${city}, ${state}`] : [street, `${city}, ${state} ${postalCode}`];
