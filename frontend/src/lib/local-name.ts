import { translated } from "@/messages/catalogue";

/** A name that the database gives in English, in the reader's language where we know it (`messages/en/names.ts`). */
export const localName = (name: string): string => translated(`names.${name}`) ?? name;
