const APIS: [RegExp, string][] = [
  [/^auth/, "Auth"],
  [/^rest/, "REST"],
  [/^storage/, "Storage"],
  [/^realtime/, "Realtime"],
  [/^functions/, "Functions"],
];

/** The API that a file of tests is about. */
export function apiOf(file: string): string {
  const name = file.replace(/^.*tests\//, "");
  return APIS.find(([pattern]) => pattern.test(name))?.[1] ?? "AidBridge";
}
