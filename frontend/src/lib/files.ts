/** The limits on files (sections 5 and 9) as pure rules: which are accepted or refused, and why. */

export interface FileRules {
  /** MIME types and file extensions as an `accept` attribute lists them ('image/*' allowed). */
  accept: readonly string[];
  /** How people call these types, in every language alike: 'PDF, JPEG, PNG'. */
  names: string;
  /** Bytes per file. */
  maxBytes: number;
  maxFiles: number;
}

const MB = 1024 * 1024;
const WORD = [
  "application/msword",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ".doc",
  ".docx",
];

/** The upload component's defaults: jpeg, png, pdf; 10 MB each; 5 files. */
export const DEFAULT_FILE_RULES: FileRules = {
  accept: ["image/jpeg", "image/png", "application/pdf"],
  names: "PDF, JPEG, PNG",
  maxBytes: 10 * MB,
  maxFiles: 5,
};

/** Documents sent with a request. */
export const REQUEST_FILE_RULES: FileRules = {
  ...DEFAULT_FILE_RULES,
  accept: [...DEFAULT_FILE_RULES.accept, ...WORD],
  names: "PDF, Word, JPEG, PNG",
};

/** Documents sent later, when more proof is asked for. */
export const ADDITIONAL_FILE_RULES: FileRules = { ...REQUEST_FILE_RULES, maxFiles: 10 };

export const PHOTO_FILE_RULES: FileRules = { accept: ["image/*"], names: "a picture", maxBytes: 10 * MB, maxFiles: 1 };

/** An organization's logo; 512 by 512 is recommended. */
export const LOGO_FILE_RULES: FileRules = {
  accept: [".jpg", ".jpeg", ".png"],
  names: "JPEG, PNG",
  maxBytes: 5 * MB,
  maxFiles: 1,
};

export interface Rejection {
  file: File;
  reason: "type" | "size" | "count";
}

function isAccepted(file: File, accept: readonly string[]): boolean {
  const name = file.name.toLowerCase();
  return accept.some((rule) => {
    if (rule.startsWith(".")) return name.endsWith(rule);
    if (rule.endsWith("/*")) return file.type.startsWith(rule.slice(0, -1));
    return file.type === rule;
  });
}

/**
 * Splits newly chosen files; `already` is the number chosen before. Files beyond the maximum are refused, each with its
 * reason.
 */
export function sortFiles(
  chosen: readonly File[],
  already: number,
  rules: FileRules,
): { accepted: File[]; rejections: Rejection[] } {
  const accepted: File[] = [];
  const rejections: Rejection[] = [];
  for (const file of chosen) {
    if (!isAccepted(file, rules.accept)) rejections.push({ file, reason: "type" });
    else if (file.size > rules.maxBytes) rejections.push({ file, reason: "size" });
    else if (already + accepted.length >= rules.maxFiles) rejections.push({ file, reason: "count" });
    else accepted.push(file);
  }
  return { accepted, rejections };
}

const typesByExtension: Readonly<Record<string, string>> = {
  pdf: "application/pdf",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  png: "image/png",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
};

/** 'Letter.PDF' → 'pdf'; '' when the name has none. */
export const fileExtension = (name: string): string => /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";

/** A file's type; browsers leave it empty for Word files on machines without Word. */
export const mimeTypeOf = (file: File): string =>
  file.type || typesByExtension[fileExtension(file.name)] || "application/octet-stream";
