import { translated } from "@/messages/catalogue";

/** Translates a name from the database if we know it (`messages/en/names.ts`). */
export const localName = (name: string): string => translated(`names.${name}`) ?? name;
