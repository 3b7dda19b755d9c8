/** The kinds of help that people choose from: the `get-categories` function, read without supabase-js, which comes later. */
import { loadAppConfig } from "./env";

export interface HelpKind {
  id: string;
  name: string;
  description: string | null;
}

/** A plain GET, which `public/theme.js` starts before the app's code has loaded. */
export async function loadHelpKinds(): Promise<HelpKind[]> {
  const { apiUrl } = await loadAppConfig();
  const response = await fetch(`${apiUrl}/functions/v1/get-categories`);
  if (!response.ok)
    throw Object.assign(new Error(`get-categories answered ${response.status}`), { status: response.status });
  return ((await response.json()) as { categories?: HelpKind[] }).categories ?? [];
}
