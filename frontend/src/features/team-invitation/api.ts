/** An invitation to a team: its details, and accepting it. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { reads } from "@/lib/query-keys";
import { useSession } from "@/lib/session";
import { z } from "zod";
import { rpc } from "@/lib/rpc";

const invitationSchema = z.object({
  state: z.enum(["open", "accepted", "expired", "unknown"]),
  organization: z.string().optional(),
  role: z.enum(["admin", "manager", "employee", "volunteer"]).optional(),
  /** Masked. */
  email: z.string().optional(),
  /** Whether it was sent to the signed-in person's address; null if signed out. */
  for_you: z.boolean().nullable().optional(),
});
export type Invitation = z.output<typeof invitationSchema>;

const acceptedSchema = z.object({
  nonprofit_id: z.string(),
  name: z.string(),
  role: z.enum(["admin", "manager", "employee", "volunteer"]),
});

/** `userId` is part of the key, because `for_you` depends on it. */
export const invitationQuery = (token: string, userId: string | null) =>
  queryOptions({
    queryKey: [...reads.teamInvitation, token, userId],
    queryFn: () => rpc("team_invitation", { token }, invitationSchema),
  });

export function useAcceptInvitation() {
  const { refresh } = useSession();
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: (token: string) => rpc("accept_team_invitation", { token }, acceptedSchema),
    onSuccess: () => refresh(),
    onSettled: () => queryClient.invalidateQueries({ queryKey: reads.teamInvitation }),
  });
}
