/** File selection with the spec's limits and toasts. It does not upload: the caller sends the files. */
import { Camera, FileText, FileWarning, Image as ImageIcon, Upload, X } from "lucide-react";
import { useId, useRef, useState, type DragEvent } from "react";
import { cn } from "@/lib/cn";
import { DEFAULT_FILE_RULES, sortFiles, type FileRules, type Rejection } from "@/lib/files";
import { formatMegabytes } from "@/lib/format";
import { useMedia } from "@/lib/use-media";
import { useOnline } from "@/lib/use-online";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/files";
import { Button } from "./ui/button";
import { ProgressBar } from "./ui/progress";

/** The progress of a file. */
export interface FileProgress {
  /** Percent sent; undefined while it waits. */
  percent?: number;
  /** Why the server refused it, in words. */
  error?: string;
  /** A text instead of an unknown percentage: 'sending…'. */
  note?: string;
}

/** A file that is already stored. */
export interface StoredFile {
  id: string;
  name: string;
  /** Bytes. */
  size: number;
}

export interface FileUploadProps {
  files: readonly File[];
  onChange: (files: File[]) => void;
  rules?: Partial<FileRules>;
  label?: string;
  hint?: string;
  progress?: (file: File) => FileProgress | undefined;
  /** Stored files: listed first, counted with the rest. */
  stored?: readonly StoredFile[];
  onRemoveStored?: (id: string) => void;
  disabled?: boolean;
  id?: string;
  "aria-describedby"?: string;
}

/** The spec's title and sentence for a refused file. */
function whyNot(file: File, reason: Rejection["reason"], limits: FileRules): [title: string, why: string] {
  switch (reason) {
    case "type":
      return [t("files.invalidType"), t("files.invalidTypeBody", { file: file.name })];
    case "size":
      return [t("files.tooLarge"), t("files.tooLargeBody", { file: file.name, size: limits.maxBytes / 1024 / 1024 })];
    case "count":
      return [t("files.tooMany"), t("files.tooManyBody", { count: limits.maxFiles })];
  }
}

export function FileUpload({
  files,
  onChange,
  rules,
  label,
  hint,
  progress,
  stored = [],
  onRemoveStored,
  disabled,
  id,
  ...props
}: FileUploadProps) {
  const limits: FileRules = { ...DEFAULT_FILE_RULES, ...rules };
  const input = useRef<HTMLInputElement>(null);
  const fallbackId = useId();
  const inputId = id ?? fallbackId;
  const onPhone = useMedia("(pointer: coarse)");
  const online = useOnline();
  const [over, setOver] = useState(false);
  /** Refused files, each with its reason, until the next selection or until dismissed. */
  const [rejected, setRejected] = useState<readonly { name: string; why: string }[]>([]);

  const add = (chosen: readonly File[]) => {
    const { accepted, rejections } = sortFiles(chosen, stored.length + files.length, limits);
    setRejected(
      rejections.map(({ file, reason }) => {
        const [title, why] = whyNot(file, reason, limits);
        toast({ variant: "destructive", title, description: why });
        return { name: file.name, why };
      }),
    );
    if (accepted.length > 0) onChange([...files, ...accepted]);
  };

  /** The same input, this time with the camera only. */
  const takePhoto = () => {
    const chooser = input.current;
    if (!chooser) return;
    chooser.setAttribute("capture", "environment");
    chooser.accept = "image/*";
    chooser.click();
    chooser.removeAttribute("capture");
    chooser.accept = limits.accept.join(",");
  };

  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (!disabled) add([...event.dataTransfer.files]);
  };

  return (
    <div>
      <div
        className={cn("drop", over && "over")}
        onDragOver={(event) => {
          event.preventDefault();
          if (!disabled) setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={onDrop}
      >
        <div>
          <label className="label" htmlFor={inputId}>
            {label ?? t("files.documents")}
          </label>
          <span className="hint" id={`${inputId}-limits`}>
            {hint ??
              t("files.limits", { types: limits.names, size: limits.maxBytes / 1024 / 1024, count: limits.maxFiles })}
          </span>
        </div>
        <input
          ref={input}
          id={inputId}
          type="file"
          multiple={limits.maxFiles > 1}
          accept={limits.accept.join(",")}
          disabled={disabled}
          className="visually-hidden"
          tabIndex={-1}
          aria-describedby={cn(`${inputId}-limits`, props["aria-describedby"])}
          onChange={(event) => {
            add([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        <Button onClick={() => input.current?.click()} disabled={disabled} aria-describedby={`${inputId}-limits`}>
          <Upload aria-hidden="true" />
          {limits.maxFiles > 1 ? t("files.choose") : t("files.chooseOne")}
        </Button>
        {onPhone && limits.accept.includes("image/jpeg") ? (
          <Button onClick={takePhoto} disabled={disabled} aria-describedby={`${inputId}-limits`}>
            <Camera aria-hidden="true" />
            {t("files.takePhoto")}
          </Button>
        ) : null}
      </div>
      {rejected.length > 0 ? (
        <ul className="files mt-3" aria-label={t("files.notTaken")}>
          {rejected.map(({ name, why }, index) => (
            <li key={`${name}-${index}`}>
              <FileWarning aria-hidden="true" />
              <span className="name">
                {name}
                <strong className="block text-sm text-danger-text">{why}</strong>
              </span>
              <Button
                size="icon"
                aria-label={t("files.putAway", { file: name })}
                onClick={() => setRejected((list) => list.filter((_, at) => at !== index))}
              >
                <X aria-hidden="true" />
              </Button>
            </li>
          ))}
        </ul>
      ) : null}
      {stored.length + files.length > 0 ? (
        <ul className="files mt-3" aria-label={t("files.chosen")}>
          {stored.map((file) => (
            <li key={file.id}>
              <FileText aria-hidden="true" />
              <span className="name">
                {file.name}
                <span className="block text-sm text-soft">
                  {t("files.arrived", { size: formatMegabytes(file.size) })}
                </span>
              </span>
              {onRemoveStored ? (
                <Button
                  size="icon"
                  disabled={disabled}
                  aria-label={t("files.removeFile", { file: file.name })}
                  onClick={() => onRemoveStored(file.id)}
                >
                  <X aria-hidden="true" />
                </Button>
              ) : null}
            </li>
          ))}
          {files.map((file, index) => {
            const state = progress?.(file);
            const Icon = state?.error ? FileWarning : file.type.startsWith("image/") ? ImageIcon : FileText;
            return (
              <li key={`${file.name}-${file.size}-${index}`}>
                <Icon aria-hidden="true" />
                <span className="name">
                  {file.name}
                  <span className="block text-sm text-soft">
                    {state?.error ? (
                      <strong className="text-danger-text">{state.error}</strong>
                    ) : state && !online ? (
                      t("files.waits", { size: formatMegabytes(file.size) })
                    ) : state?.percent !== undefined ? (
                      t("files.sent", { size: formatMegabytes(file.size), percent: Math.round(state.percent) })
                    ) : (
                      (state?.note ?? formatMegabytes(file.size))
                    )}
                  </span>
                  {state?.percent !== undefined && state.percent < 100 && !state.error ? (
                    <ProgressBar value={state.percent} label={file.name} />
                  ) : null}
                </span>
                <Button
                  size="icon"
                  disabled={disabled}
                  aria-label={t("files.removeFile", { file: file.name })}
                  onClick={() => onChange(files.filter((_, at) => at !== index))}
                >
                  <X aria-hidden="true" />
                </Button>
              </li>
            );
          })}
        </ul>
      ) : null}
    </div>
  );
}
