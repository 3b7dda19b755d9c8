/** The people of an organization, and invitations by mail. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { reads } from "@/lib/query-keys";
import type { NonprofitRole } from "@/lib/session";
import { getSupabase } from "@/lib/supabase";
import type { AddMemberForm, EditMemberForm } from "./schema";

export interface Member {
  id: string;
  full_name: string;
  email: string;
  role: NonprofitRole;
  /** 'pending' until the invitation is accepted. */
  user_id: string;
  is_active: boolean;
  invited_at: string | null;
  joined_at: string | null;
  created_at: string;
}

const teamKey = (nonprofitId: string) => ["team", nonprofitId] as const;

/** Active first, then by creation. Searched in the page, because a team is small. */
export const teamQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: teamKey(nonprofitId),
    queryFn: async (): Promise<Member[]> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("nonprofit_team_members")
        .select("id, full_name, email, role, user_id, is_active, invited_at, joined_at, created_at")
        .eq("nonprofit_id", nonprofitId)
        .order("is_active", { ascending: false })
        .order("created_at");
      if (error) throw error;
      return data as Member[];
    },
  });

function useTeamWrite<Input, Output>(nonprofitId: string, write: (input: Input) => Promise<Output>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: write,
    onSettled: () =>
      Promise.all([
        cache.invalidateQueries({ queryKey: teamKey(nonprofitId) }),
        cache.invalidateQueries({ queryKey: [...reads.nonprofitDashboard, nonprofitId] }),
      ]),
  });
}

/** Adds a member; the database mails the invitation. */
export const useAddMember = (nonprofitId: string) =>
  useTeamWrite(nonprofitId, async (form: AddMemberForm) => {
    const supabase = await getSupabase();
    const { error } = await supabase.from("nonprofit_team_members").insert({ ...form, nonprofit_id: nonprofitId });
    if (error) throw error;
  });

export interface MemberChange extends Partial<EditMemberForm> {
  id: string;
  is_active?: boolean;
  /** The role that the admin saw. A new role is saved only if it is still this one. */
  seenRole?: NonprofitRole;
}

/** Returns the member as saved. Fails as 'not found' if the role is another one meanwhile. */
export const useChangeMember = (nonprofitId: string) =>
  useTeamWrite(nonprofitId, async ({ id, seenRole, ...change }: MemberChange) => {
    const supabase = await getSupabase();
    let write = supabase.from("nonprofit_team_members").update(change).eq("id", id);
    if (change.role && seenRole) write = write.eq("role", seenRole);
    const { data, error } = await write.select("full_name, role").single();
    if (error) throw error;
    return data as Pick<Member, "full_name" | "role">;
  });

export const useResendInvitation = (nonprofitId: string) =>
  useTeamWrite(nonprofitId, async (memberId: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("resend_team_invitation", { member_id: memberId });
    if (error) throw error;
  });
