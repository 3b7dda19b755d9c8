/** Catalogues of Lingui in two parts (`parts.ts`), compiled by vite.config.ts. */
declare module "*.po?first" {
  import type { Messages } from "@lingui/core";
  export const messages: Messages;
}
declare module "*.po?rest" {
  import type { Messages } from "@lingui/core";
  export const messages: Messages;
}
