import type { ReactNode } from "react";
import { t } from "@/messages";
import { Button } from "./ui/button";
import { Dialog, DialogClose, DialogContent } from "./ui/dialog";

export interface ConfirmDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: ReactNode;
  /** What will happen. */
  description: ReactNode;
  /** Verb and thing: 'Delete draft'. */
  confirmLabel: string;
  /** The cancel label; 'Cancel' unless that word is ambiguous here. */
  cancelLabel?: string;
  busyLabel?: string;
  busy?: boolean;
  tone?: "primary" | "danger";
  onConfirm: () => void;
}

/** A confirmation dialog. Esc, Cancel and a click outside close it. */
export function ConfirmDialog({
  open,
  onOpenChange,
  title,
  description,
  confirmLabel,
  cancelLabel,
  busyLabel,
  busy,
  tone = "danger",
  onConfirm,
}: ConfirmDialogProps) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange}>
      <DialogContent title={title} description={description} role="alertdialog" dirty={busy}>
        <div className="actions">
          <Button variant={tone} busy={busy} busyLabel={busyLabel} onClick={onConfirm}>
            {confirmLabel}
          </Button>
          <DialogClose asChild>
            <Button>{cancelLabel ?? t("common.cancel")}</Button>
          </DialogClose>
        </div>
      </DialogContent>
    </Dialog>
  );
}
