import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ComponentProps } from "react";
import { t } from "@/messages";
import { Button } from "./button";
import { keepFocusInSight, useReturnFocus } from "./return-focus";

export const Sheet = Radix.Root;
export const SheetTrigger = Radix.Trigger;
export const SheetClose = Radix.Close;

/** A menu from the side, 18 rem wide. `title` names it for screen readers. */
export function SheetContent({ title, children, ...props }: ComponentProps<typeof Radix.Content> & { title: string }) {
  const returnFocus = useReturnFocus();
  return (
    <Radix.Portal>
      <Radix.Overlay className="overlay" />
      <Radix.Content
        className="menu-sheet"
        aria-describedby={undefined}
        onFocus={keepFocusInSight}
        {...returnFocus}
        {...props}
      >
        <div className="flex items-center justify-between ps-3">
          <Radix.Title className="text-ui">{title}</Radix.Title>
          <Radix.Close asChild>
            <Button size="icon" aria-label={t("common.close")}>
              <X aria-hidden="true" />
            </Button>
          </Radix.Close>
        </div>
        {children}
      </Radix.Content>
    </Radix.Portal>
  );
}
