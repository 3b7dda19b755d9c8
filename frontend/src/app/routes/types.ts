import type { ComponentType } from "react";
import type { Access } from "../guard";

/** One line of the route table: an address and the lazy module that shows it. */
export interface AppRoute {
  /** As built by `paths.ts`, with `:id` for an id. */
  path: string;
  /** The module exports its screen as `Component`. */
  lazy: () => Promise<{ Component: ComponentType }>;
  /** Narrows (or widens) the audience's guard for this page. */
  access?: Access;
  /** `site`: header and footer; `shell`: sidebar. The audience's own by default. */
  layout?: "site" | "shell";
  /** A public page without server data: it loads without the query cache. */
  static?: boolean;
  /** The part of a language's catalogue in which all its words are (`messages/parts.ts`; a test holds it to that); else it waits for all. */
  words?: "ask" | "first";
}
