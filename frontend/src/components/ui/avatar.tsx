import { useState } from "react";
import { cn } from "@/lib/cn";
import { avatarFallback, initialsOf } from "@/lib/format";

/** A person's photo, or the first letter of their name, or its initials ('NA' without one). Silent: the name stands beside it. */
export function Avatar({
  name,
  src,
  initials,
  className,
}: {
  name: string | null | undefined;
  src?: string | null;
  initials?: boolean;
  className?: string;
}) {
  const [broken, setBroken] = useState<string | null>(null);
  return (
    <span className={cn("avatar overflow-hidden", className)} aria-hidden="true">
      {src && broken !== src ? (
        <img
          src={src}
          alt=""
          className="size-full rounded-full border border-line object-cover"
          onError={() => setBroken(src)}
        />
      ) : (
        (initials ? initialsOf : avatarFallback)(name)
      )}
    </span>
  );
}
