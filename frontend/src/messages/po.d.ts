/** Catalogues of Lingui in three parts (`parts.ts`), compiled by vite.config.ts. */
declare module "*.po?ask" {
  import type { Messages } from "@lingui/core";
  export const messages: Messages;
}
declare module "*.po?first" {
  import type { Messages } from "@lingui/core";
  export const messages: Messages;
}
declare module "*.po?rest" {
  import type { Messages } from "@lingui/core";
  export const messages: Messages;
}
