import { useEffect } from "react";
import { toast } from "./toast";

/** Says once, when a read has failed, what could not be loaded (the page shows why, and 'Try again'). */
export function useFailureToast(failed: boolean, title: string, description: string): void {
  useEffect(() => {
    if (failed) toast({ variant: "destructive", title, description });
  }, [failed, title, description]);
}
