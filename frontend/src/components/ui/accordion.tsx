import { Minus, Plus } from "lucide-react";
import { Accordion as Radix } from "radix-ui";
import type { ReactNode } from "react";

export interface AccordionItem {
  id: string;
  title: ReactNode;
  body: ReactNode;
}

/** Questions that open one at a time. */
export function Accordion({ items, headingLevel = 3 }: { items: readonly AccordionItem[]; headingLevel?: 2 | 3 | 4 }) {
  const Heading = `h${headingLevel}` as const;
  return (
    <Radix.Root type="single" collapsible className="acc">
      {items.map((item) => (
        <Radix.Item key={item.id} value={item.id}>
          <Radix.Header asChild>
            <Heading className="text-base">
              <Radix.Trigger className="acc-button">
                {item.title}
                <Plus className="more" aria-hidden="true" />
                <Minus className="less" aria-hidden="true" />
              </Radix.Trigger>
            </Heading>
          </Radix.Header>
          <Radix.Content className="acc-body">
            <div>{item.body}</div>
          </Radix.Content>
        </Radix.Item>
      ))}
    </Radix.Root>
  );
}
