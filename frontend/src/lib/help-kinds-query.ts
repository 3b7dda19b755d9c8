import { queryOptions } from "@tanstack/react-query";
import { loadHelpKinds } from "./help-kinds";
import { reads } from "./query-keys";

export const helpKindsQuery = queryOptions({
  queryKey: [...reads.requestForm, "categories"],
  staleTime: 5 * 60_000,
  queryFn: loadHelpKinds,
});
