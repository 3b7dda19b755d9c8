/** Puts text on the clipboard. `navigator.clipboard` exists only on https and localhost; elsewhere a selection is copied. */
export async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.style.position = "fixed";
  field.style.opacity = "0";
  const before = document.activeElement;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  if (!copied) throw new Error("the browser did not copy");
}
