export function formsOf(message: string): string | Record<string, string>;
export function wordsSql(): Promise<string>;
