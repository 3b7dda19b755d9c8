/** Organizations: founding one, its settings and its logo. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { reads } from "@/lib/query-keys";
import type { NonprofitRole } from "@/lib/session";
import { replacePicture } from "@/lib/pictures";
import { z } from "zod";
import { nothing, rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";
import { parseDollars } from "@/schemas/amount";
import { completeCategories, linesOf, type OnboardingForm, type SettingsForm } from "./schema";

const organizationRowSchema = z.object({
  id: z.string(),
  name: z.string(),
  legal_status: z.string(),
  registration_number: z.string(),
  employee_count: z.number(),
  mission: z.string(),
  description: z.string().nullable(),
  email: z.string().nullable(),
  phone: z.string().nullable(),
  website: z.string().nullable(),
  location: z.string().nullable(),
  average_response_time_days: z.number().nullable(),
  helps_with: z.array(z.string()),
  service_area: z.array(z.string()),
  logo_path: z.string().nullable(),
  status: z.enum(["active", "awaiting_approval", "closed"]),
});
export type OrganizationRow = z.output<typeof organizationRowSchema>;

const readSchema = organizationRowSchema.extend({
  nonprofit_settings: z.object({ second_approval_above: z.number().nullable() }).nullable(),
});

export interface OrganizationDetails extends OrganizationRow {
  logoUrl: string | null;
  /** Dollars; null when one approval is enough for any amount. */
  secondApprovalAbove: number | null;
}

const COLUMNS =
  "id, name, legal_status, registration_number, employee_count, mission, description, email, phone, website, location, average_response_time_days, helps_with, service_area, logo_path, status";

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
      const { nonprofit_settings: settings, ...row } = readSchema.parse(data);
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

/** Creates an organization with its first admin and complete service categories, in one transaction. */
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

const orNumber = (text: string) => (text === "" ? null : Number(text));

/** Column and value of each field of the form. */
const columns: {
  [F in keyof SettingsForm]: (text: string) => [column: string, value: string | number | string[] | null];
} = {
  name: (text) => ["name", text],
  legalStatus: (text) => ["legal_status", text],
  registrationNumber: (text) => ["registration_number", text],
  employeeCount: (text) => ["employee_count", Number(text)],
  mission: (text) => ["mission", text],
  description: (text) => ["description", orNull(text)],
  email: (text) => ["email", orNull(text)],
  phone: (text) => ["phone", orNull(text)],
  website: (text) => ["website", orNull(text)],
  location: (text) => ["location", orNull(text)],
  helpsWith: (text) => ["helps_with", text === "" ? [] : text.split(",")],
  serviceArea: (text) => ["service_area", linesOf(text)],
  responseDays: (text) => ["average_response_time_days", orNumber(text)],
  secondApprovalAbove: (text) => ["second_approval_above", parseDollars(text)],
};

const columnsOf = (form: Partial<SettingsForm>, keys: readonly (keyof SettingsForm)[]) =>
  Object.fromEntries(keys.map((key) => columns[key](form[key] ?? "")));

/** After a change of what an organization says of itself: its settings, and what the public sees of it. */
function useReadAgain(id: string) {
  const cache = useQueryClient();
  return () =>
    Promise.all([
      cache.invalidateQueries({ queryKey: organizationKeys.details(id) }),
      cache.invalidateQueries({ queryKey: reads.directory }),
    ]);
}

/** Saves all changes in one step, or nothing if a colleague has changed the same fields. */
export function useSaveOrganization(id: string) {
  const readAgain = useReadAgain(id);
  return useMutation({
    /** `changed`: the fields that this person changed; `seen`: what the page showed of them. */
    mutationFn: async ({ changed, seen }: { changed: Partial<SettingsForm>; seen: SettingsForm }) => {
      const keys = Object.keys(changed) as (keyof SettingsForm)[];
      await rpc(
        "save_organization",
        { nonprofit_id: id, changes: columnsOf(changed, keys), seen: columnsOf(seen, keys) },
        nothing,
      );
    },
    onSuccess: readAgain,
  });
}

const extension = (file: File) => (file.name.match(/\.(jpe?g|png)$/i)?.[0] ?? ".png").toLowerCase();

async function pointToLogo(id: string, path: string | null): Promise<void> {
  const supabase = await getSupabase();
  const { error } = await supabase.from("nonprofits").update({ logo_path: path }).eq("id", id).select("id").single();
  if (error) throw error;
}

/** Replaces the logo. */
export function useSaveLogo(id: string) {
  const readAgain = useReadAgain(id);
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
    onSuccess: readAgain,
  });
}

export function useRemoveLogo(id: string) {
  const readAgain = useReadAgain(id);
  return useMutation({
    mutationFn: async (path: string) => {
      await pointToLogo(id, null);
      const supabase = await getSupabase();
      await supabase.storage.from("logos").remove([path]);
    },
    onSuccess: readAgain,
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
