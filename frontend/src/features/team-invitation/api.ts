/** An invitation to a team: what it is about, and accepting it. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import type { NonprofitRole } from "@/lib/session";
import { useSession } from "@/lib/session";
import { getSupabase } from "@/lib/supabase";

export interface Invitation {
  state: "open" | "accepted" | "expired" | "unknown";
  organization?: string;
  role?: NonprofitRole;
  /** Masked. */
  email?: string;
  /** Whether it was sent to the signed-in person's address; null signed out. */
  for_you?: boolean | null;
}

/** `userId` is part of the key: `for_you` depends on who asks. */
export const invitationQuery = (token: string, userId: string | null) =>
  queryOptions({
    queryKey: ["team-invitation", token, userId],
    queryFn: async (): Promise<Invitation> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("team_invitation", { token });
      if (error) throw error;
      return data as unknown as Invitation;
    },
  });

export function useAcceptInvitation() {
  const { refresh } = useSession();
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (token: string): Promise<{ nonprofit_id: string; name: string; role: NonprofitRole }> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("accept_team_invitation", { token });
      if (error) throw error;
      return data as { nonprofit_id: string; name: string; role: NonprofitRole };
    },
    onSuccess: () => refresh(),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["team-invitation"] }),
  });
}
