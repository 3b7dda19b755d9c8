/** The format of our catalogues: ids without line numbers. For the tools; the app gets them compiled. */
import { formatter } from "@lingui/format-po";

export const poFormat = formatter({ lineNumbers: false, printLinguiId: false, explicitIdAsDefault: true });
