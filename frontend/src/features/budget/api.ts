/** The budget of one organization. The database computes every sum. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { z } from "zod";
import { reads } from "@/lib/query-keys";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";
import { parseAmount } from "@/schemas/amount";
import { allocationAmount, type AllocationLine, type DonationForm, type PayoutForm } from "./schema";

const categorySpendingSchema = z.object({
  category: z.string(),
  /** Approved, in dollars. */
  amount: z.number(),
  allocated: z.number(),
  /** Of the allocation; null when nothing was set aside. */
  percentage: z.number().nullable(),
});
export type CategorySpending = z.output<typeof categorySpendingSchema>;

export interface Transaction {
  id: string;
  type: "Approval" | "Donation" | "Payout";
  amount: number;
  date: string;
  category: string | null;
  request_id: string | null;
  request_number: string | null;
  donor: string | null;
}

export interface Donation {
  id: string;
  donor_name: string;
  donor_email: string | null;
  amount: number;
  status: "pledged" | "received" | "cancelled";
  pledged_at: string;
  received_at: string | null;
}

const grantSchema = z.object({
  request_id: z.string(),
  request_number: z.string(),
  category: z.string(),
  requester_name: z.string(),
  granted: z.number(),
  paid: z.number(),
  outstanding: z.number(),
  approved_at: z.string(),
});
export type Grant = z.output<typeof grantSchema>;
const grantsPageSchema = z.object({ rows: z.array(grantSchema), total: z.number() });

const budgetSchema = z.object({
  totalAllocated: z.number(),
  totalDonated: z.number(),
  totalApproved: z.number(),
  totalPaid: z.number(),
  remainingAvailable: z.number(),
  /** Percent of the allocation that is approved, rounded. */
  utilization: z.number(),
  spendingByCategory: z.array(categorySpendingSchema),
});
export type Budget = z.output<typeof budgetSchema>;

export const LEDGER_PAGE_SIZE = 20;

const keys = {
  all: (nonprofitId: string) => [...reads.budget, nonprofitId] as const,
  figures: (nonprofitId: string) => [...keys.all(nonprofitId), "figures"] as const,
  list: (nonprofitId: string, list: string, page: number) => [...keys.all(nonprofitId), list, page] as const,
};

export const budgetQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: keys.figures(nonprofitId),
    queryFn: () => rpc("nonprofit_budget", { nonprofit_id: nonprofitId }, budgetSchema),
  });

/** One page of a list, paginated on the server. */
export interface LedgerPage<T> {
  rows: T[];
  total: number;
}

interface LedgerAnswer {
  data: unknown;
  error: { code?: string } | null;
  count: number | null;
}

function ledgerPage<T>({ data, error, count }: LedgerAnswer): LedgerPage<T> {
  // a page beyond the last one is empty, not an error
  if (error?.code === "PGRST103") return { rows: [], total: 0 };
  if (error) throw error;
  return { rows: (data ?? []) as T[], total: count ?? 0 };
}

const range = (page: number): [number, number] => [(page - 1) * LEDGER_PAGE_SIZE, page * LEDGER_PAGE_SIZE - 1];

export const transactionsQuery = (nonprofitId: string, page: number) =>
  queryOptions({
    queryKey: keys.list(nonprofitId, "transactions", page),
    queryFn: async (): Promise<LedgerPage<Transaction>> => {
      const supabase = await getSupabase();
      return ledgerPage(
        await supabase
          .from("budget_transactions")
          .select("id, type, amount, date, category, request_id, request_number, donor", { count: "exact" })
          .eq("nonprofit_id", nonprofitId)
          .order("date", { ascending: false })
          .order("id")
          .range(...range(page)),
      );
    },
    placeholderData: keepPreviousData,
  });

/** Open pledges first (they wait for an answer), then the newest. */
export const donationsQuery = (nonprofitId: string, page: number) =>
  queryOptions({
    queryKey: keys.list(nonprofitId, "donations", page),
    queryFn: async (): Promise<LedgerPage<Donation>> => {
      const supabase = await getSupabase();
      return ledgerPage(
        await supabase
          .from("donations")
          .select("id, donor_name, donor_email, amount, status, pledged_at, received_at", { count: "exact" })
          .eq("nonprofit_id", nonprofitId)
          .order("waits", { ascending: false })
          .order("dated", { ascending: false })
          .order("id")
          .range(...range(page)),
      );
    },
    placeholderData: keepPreviousData,
  });

/** Approved requests: what is still to pay first. */
export const grantsQuery = (nonprofitId: string, page: number) =>
  queryOptions({
    queryKey: keys.list(nonprofitId, "grants", page),
    queryFn: () =>
      rpc("grants_page", { nonprofit_id: nonprofitId, page, page_size: LEDGER_PAGE_SIZE }, grantsPageSchema),
    placeholderData: keepPreviousData,
  });

function useBudgetWrite<Input>(nonprofitId: string, write: (input: Input) => Promise<void>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: write,
    onSettled: () =>
      Promise.all([
        cache.invalidateQueries({ queryKey: keys.all(nonprofitId) }),
        cache.invalidateQueries({ queryKey: [...reads.nonprofitDashboard, nonprofitId] }),
        cache.invalidateQueries({ queryKey: [...reads.incomingRequests, nonprofitId, "detail"] }),
        cache.invalidateQueries({ queryKey: [...reads.donorMessages, nonprofitId] }),
      ]),
  });
}

/** `key`: the same for each attempt at one entry, so that a repeated send counts once. */
export const useRecordDonation = (nonprofitId: string) =>
  useBudgetWrite(nonprofitId, async ({ form, key }: { form: DonationForm; key: string }) => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("record_donation", {
      nonprofit_id: nonprofitId,
      amount: parseAmount(form.amount) ?? 0,
      donor_name: form.donor_name,
      donor_email: form.donor_email || undefined,
      key,
    });
    if (error) throw error;
  });

export const useReceiveDonation = (nonprofitId: string) =>
  useBudgetWrite(nonprofitId, async (id: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("receive_donation", { donation_id: id });
    if (error) throw error;
  });

export const useCancelDonation = (nonprofitId: string) =>
  useBudgetWrite(nonprofitId, async (id: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("cancel_donation", { donation_id: id });
    if (error) throw error;
  });

export const useRecordPayout = (nonprofitId: string) =>
  useBudgetWrite(
    nonprofitId,
    async ({ requestId, form, key }: { requestId: string; form: PayoutForm; key: string }) => {
      const supabase = await getSupabase();
      const { error } = await supabase.rpc("record_payout", {
        request_id: requestId,
        amount: parseAmount(form.amount) ?? 0,
        note: form.note || undefined,
        key,
      });
      if (error) throw error;
    },
  );

/** Writes the lines independently, so that a failed one does not affect the others. */
export const useSaveAllocations = (nonprofitId: string) =>
  useBudgetWrite(nonprofitId, async (lines: readonly AllocationLine[]) => {
    const supabase = await getSupabase();
    const answers = await Promise.all(
      lines.map((line) =>
        supabase.rpc("set_budget_allocation", {
          nonprofit_id: nonprofitId,
          category: line.category,
          amount: allocationAmount(line.amount),
        }),
      ),
    );
    for (const { error } of answers) if (error) throw error;
  });
