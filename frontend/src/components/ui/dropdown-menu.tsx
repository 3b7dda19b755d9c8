import { Check } from "lucide-react";
import { DropdownMenu as Radix } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** Not modal: the page behind stays readable to screen readers, and a press beside the menu counts there. */
export function DropdownMenu({ modal = false, ...props }: ComponentProps<typeof Radix.Root>) {
  return <Radix.Root modal={modal} {...props} />;
}
export const DropdownMenuTrigger = Radix.Trigger;
export const DropdownMenuRadioGroup = Radix.RadioGroup;

export function DropdownMenuContent({ className, ...props }: ComponentProps<typeof Radix.Content>) {
  return (
    <Radix.Portal>
      <Radix.Content className={cn("pop", className)} sideOffset={4} align="end" {...props} />
    </Radix.Portal>
  );
}

export function DropdownMenuItem({ className, ...props }: ComponentProps<typeof Radix.Item>) {
  return <Radix.Item className={cn("pop-item", className)} {...props} />;
}

export function DropdownMenuRadioItem({ className, children, ...props }: ComponentProps<typeof Radix.RadioItem>) {
  return (
    <Radix.RadioItem className={cn("pop-item", className)} {...props}>
      {children}
      <Radix.ItemIndicator className="end">
        <Check aria-hidden="true" />
      </Radix.ItemIndicator>
    </Radix.RadioItem>
  );
}

export function DropdownMenuSeparator({ className, ...props }: ComponentProps<typeof Radix.Separator>) {
  return <Radix.Separator className={cn("pop-rule", className)} {...props} />;
}

export function DropdownMenuLabel({ className, ...props }: ComponentProps<typeof Radix.Label>) {
  return <Radix.Label className={cn("px-3 py-2 leading-snug", className)} {...props} />;
}
