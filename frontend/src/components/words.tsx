import { Fragment, type ReactNode } from "react";
import { pieces, type MessageKey } from "@/messages";

/** A message whose `{name}` places hold elements: `parts={{ terms: <Link …/> }}`. */
export function Words({ k, parts }: { k: MessageKey; parts: Record<string, ReactNode> }) {
  return pieces(k).map((piece, index) => (
    <Fragment key={index}>{/^\{\w+\}$/.test(piece) ? (parts[piece.slice(1, -1)] ?? piece) : piece}</Fragment>
  ));
}
