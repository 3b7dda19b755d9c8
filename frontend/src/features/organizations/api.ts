/** Organizations: founding one, its settings and its logo. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import type { NonprofitRole } from "@/lib/session";
import { replacePicture } from "@/lib/pictures";
import { getSupabase } from "@/lib/supabase";
import { completeCategories, type OnboardingForm, type SettingsForm } from "./schema";

export interface OrganizationRow {
  id: string;
  name: string;
  legal_status: string;
  registration_number: string;
  employee_count: number;
  mission: string;
  description: string | null;
  email: string | null;
  phone: string | null;
  website: string | null;
  location: string | null;
  average_response_time_days: number | null;
  logo_path: string | null;
  status: "active" | "awaiting_approval" | "closed";
}

export interface OrganizationDetails extends OrganizationRow {
  logoUrl: string | null;
  /** Dollars; null when one approval is enough for any amount. */
  secondApprovalAbove: number | null;
}

const COLUMNS =
  "id, name, legal_status, registration_number, employee_count, mission, description, email, phone, website, location, average_response_time_days, logo_path, status";

export const organizationKeys = { details: (id: string) => ["organizations", id] as const };

export const organizationQuery = (id: string) =>
  queryOptions({
    queryKey: organizationKeys.details(id),
    queryFn: async (): Promise<OrganizationDetails> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("nonprofits")
        .select(`${COLUMNS}, nonprofit_settings(second_approval_above)`)
        .eq("id", id)
        .single();
      if (error) throw error;
      const { nonprofit_settings: settings, ...row } = data as unknown as OrganizationRow & {
        nonprofit_settings: { second_approval_above: number | null } | null;
      };
      return {
        ...row,
        logoUrl: row.logo_path ? supabase.storage.from("logos").getPublicUrl(row.logo_path).data.publicUrl : null,
        secondApprovalAbove: settings?.second_approval_above ?? null,
      };
    },
  });

export interface Founded {
  id: string;
  name: string;
}

/** Founds an organization for its first admin, with its complete service categories, in one transaction. */
export function useCreateOrganization() {
  return useMutation({
    mutationFn: async (form: OnboardingForm): Promise<Founded> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("create_organization", {
        input: {
          name: form.name,
          legal_status: form.legalStatus,
          registration_number: form.registrationNumber,
          employee_count: form.employeeCount,
          mission: form.mission,
          categories: completeCategories(form.categories),
        },
      });
      if (error) throw error;
      return data as Founded;
    },
  });
}

/** The sub-role that decides which pages an account opens; it grants no power by itself. */
export function useChooseNonprofitRole() {
  return useMutation({
    mutationFn: async ({ userId, role }: { userId: string; role: NonprofitRole }) => {
      const supabase = await getSupabase();
      const { error } = await supabase
        .from("user_roles")
        .upsert({ user_id: userId, role: "nonprofit", nonprofit_role: role }, { onConflict: "user_id" });
      if (error) throw error;
    },
  });
}

const orNull = (text: string) => (text === "" ? null : text);

export function useSaveOrganization(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async (form: SettingsForm) => {
      const supabase = await getSupabase();
      const organization = await supabase
        .from("nonprofits")
        .update({
          name: form.name,
          legal_status: form.legalStatus,
          registration_number: form.registrationNumber,
          employee_count: Number(form.employeeCount),
          mission: form.mission,
          description: orNull(form.description),
          email: orNull(form.email),
          phone: orNull(form.phone),
          website: orNull(form.website),
          location: orNull(form.location),
          average_response_time_days: form.responseDays === "" ? null : Number(form.responseDays),
        })
        .eq("id", id)
        .select("id")
        .single();
      if (organization.error) throw organization.error;
      const settings = await supabase.rpc("set_second_approval", {
        nonprofit_id: id,
        above: form.secondApprovalAbove === "" ? undefined : Number(form.secondApprovalAbove),
      });
      if (settings.error) throw settings.error;
    },
    onSuccess: () => cache.invalidateQueries({ queryKey: organizationKeys.details(id) }),
  });
}

const extension = (file: File) => (file.name.match(/\.(jpe?g|png)$/i)?.[0] ?? ".png").toLowerCase();

async function pointToLogo(id: string, path: string | null): Promise<void> {
  const supabase = await getSupabase();
  const { error } = await supabase.from("nonprofits").update({ logo_path: path }).eq("id", id).select("id").single();
  if (error) throw error;
}

/** Another logo in place of the one before. */
export function useSaveLogo(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ file, previous }: { file: File; previous: string | null }) =>
      replacePicture({
        bucket: "logos",
        folder: id,
        file,
        extension: extension(file),
        before: previous,
        pointTo: (path) => pointToLogo(id, path),
      }),
    onSuccess: () => cache.invalidateQueries({ queryKey: organizationKeys.details(id) }),
  });
}

export function useRemoveLogo(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async (path: string) => {
      await pointToLogo(id, null);
      const supabase = await getSupabase();
      await supabase.storage.from("logos").remove([path]);
    },
    onSuccess: () => cache.invalidateQueries({ queryKey: organizationKeys.details(id) }),
  });
}

/** Ends the organization: open requests go back to the people who asked. */
export function useCloseOrganization(id: string) {
  return useMutation({
    mutationFn: async () => {
      const supabase = await getSupabase();
      const { error } = await supabase.rpc("close_organization", { nonprofit_id: id });
      if (error) throw error;
    },
  });
}
