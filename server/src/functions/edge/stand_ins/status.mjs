// Names of HTTP status codes, as in deno.land/std/http/http_status.ts.
import { STATUS_CODES } from "node:http";

export const STATUS_TEXT = { ...STATUS_CODES };
const names = { 200: "OK", 203: "NonAuthoritativeInfo", 207: "MultiStatus", 413: "RequestEntityTooLarge", 414: "RequestURITooLong",
  416: "RequestedRangeNotSatisfiable", 418: "Teapot" };
export const Status = {};
export const STATUS_CODE = Status;
for (const [code, text] of Object.entries(STATUS_CODES)) {
  Status[names[code] ?? text.replace(/[^A-Za-z]/g, "")] = Number(code);
}
export const isErrorStatus = (code) => code >= 400 && code < 600;
export const isInformationalStatus = (code) => code >= 100 && code < 200;
export const isRedirectStatus = (code) => code >= 300 && code < 400;
export const isServerErrorStatus = (code) => code >= 500 && code < 600;
export const isClientErrorStatus = (code) => code >= 400 && code < 500;
export const isSuccessfulStatus = (code) => code >= 200 && code < 300;
