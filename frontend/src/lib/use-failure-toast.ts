import { useEffect } from "react";
import { toast } from "./toast";

/** Shows one toast when a read fails (the page shows the reason and 'Try again'). */
export function useFailureToast(failed: boolean, title: string, description: string): void {
  useEffect(() => {
    if (failed) toast({ variant: "destructive", title, description });
  }, [failed, title, description]);
}
