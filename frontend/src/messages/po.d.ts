/** Catalogues of Lingui, compiled by vite.config.ts. */
declare module "*.po" {
  import type { Messages } from "@lingui/core";
  export const messages: Messages;
}
