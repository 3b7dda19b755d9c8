import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";
import { t } from "@/messages";
import { Button, type ButtonProps } from "./button";
import { keepFocusInSight, useReturnFocus } from "./return-focus";

export const Dialog = Radix.Root;
export const DialogTrigger = Radix.Trigger;
export const DialogClose = Radix.Close;

export interface DialogContentProps extends Omit<ComponentProps<typeof Radix.Content>, "title"> {
  title: ReactNode;
  /** What will happen; read out with the title. */
  description?: ReactNode;
  /** Something was typed: a click outside does not close it then (Esc and Cancel do). */
  dirty?: boolean;
}

/** A dialog on desks, a sheet from below on phones. */
export function DialogContent({ title, description, dirty, className, children, ...props }: DialogContentProps) {
  const returnFocus = useReturnFocus();
  return (
    <Radix.Portal>
      <Radix.Overlay className="overlay" />
      <div className="dialog-frame">
        <Radix.Content
          className={cn("dialog", className)}
          {...(description ? {} : { "aria-describedby": undefined })}
          onInteractOutside={(event) => {
            if (dirty) event.preventDefault();
          }}
          onFocus={keepFocusInSight}
          {...returnFocus}
          {...props}
        >
          <div className="dialog-head">
            <div>
              <Radix.Title>{title}</Radix.Title>
              {description ? (
                <Radix.Description className="mt-1 text-ui text-soft">{description}</Radix.Description>
              ) : null}
            </div>
            <Radix.Close asChild>
              <Button size="icon" aria-label={t("common.close")}>
                <X aria-hidden="true" />
              </Button>
            </Radix.Close>
          </div>
          <div className="mt-4">{children}</div>
        </Radix.Content>
      </div>
    </Radix.Portal>
  );
}

export interface DialogAnswersProps extends Omit<ButtonProps, "children" | "type"> {
  /** What sending does, in words. */
  submit: ReactNode;
  /** The label for leaving without sending. */
  cancel?: string;
  onCancel?: () => void;
}

/** The two buttons below a form in a dialog: send and leave. Other props go to the send button. */
export function DialogAnswers({ submit, cancel, onCancel, ...button }: DialogAnswersProps) {
  return (
    <div className="actions mt-0!">
      <Button type="submit" variant="primary" {...button}>
        {submit}
      </Button>
      <DialogClose asChild>
        <Button onClick={onCancel}>{cancel ?? t("common.cancel")}</Button>
      </DialogClose>
    </div>
  );
}
