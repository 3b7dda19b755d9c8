import { Search } from "lucide-react";
import type { ComponentProps } from "react";
import { Input } from "./ui/input";

/** A search field. Give it a label (`aria-label` or a Label with `htmlFor`). */
export function SearchInput(props: Omit<ComponentProps<"input">, "type">) {
  return (
    <span className="affix block">
      <Search aria-hidden="true" />
      <Input type="search" {...props} />
    </span>
  );
}
