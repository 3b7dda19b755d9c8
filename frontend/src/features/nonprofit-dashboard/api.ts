/** Everything the nonprofit's front page shows, in one round trip. */
import { queryOptions } from "@tanstack/react-query";
import { z } from "zod";
import { whileDown } from "@/lib/live";
import { reads } from "@/lib/query-keys";
import { rpc } from "@/lib/rpc";

const dashboardRequestSchema = z.object({
  request_id: z.string(),
  nonprofit_id: z.string(),
  request_number: z.string(),
  category: z.string(),
  amount: z.string(),
  amount_requested: z.number().nullable(),
  amount_approved: z.number().nullable(),
  status: z.enum(["pending", "processing", "approved", "declined", "withdrawn", "taken"]),
  part: z.enum(["open", "claimed", "taken", "denied", "withdrawn", "closed"]),
  needs_more_proof: z.boolean(),
  opened: z.boolean(),
  submitted_at: z.string(),
  waiting_days: z.number().nullable(),
  requester_name: z.string().nullable(),
  assigned_to: z.string().nullable(),
});
export type DashboardRequest = z.output<typeof dashboardRequestSchema>;

const dashboardCategorySchema = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  /** Requests of this category that were sent to the organization. */
  requests: z.number(),
  is_active: z.boolean(),
  /** False for a global category that is not on the organization's own list. */
  own: z.boolean(),
});
export type DashboardCategory = z.output<typeof dashboardCategorySchema>;

const dashboardMemberSchema = z.object({
  id: z.string(),
  full_name: z.string(),
  email: z.string(),
  role: z.enum(["admin", "manager", "employee", "volunteer"]),
  is_active: z.boolean(),
  /** 'pending' until the invitation is accepted. */
  user_id: z.string(),
});
export type DashboardMember = z.output<typeof dashboardMemberSchema>;

/** Dollars; `percent` of the allocation that was paid out, 0 to 100 and beyond. The sums are for managers alone. */
const dashboardBudgetSchema = z.object({
  percent: z.number(),
  total: z.number().optional(),
  used: z.number().optional(),
  remaining: z.number().optional(),
  by_category: z.array(z.object({ category: z.string(), amount: z.number() })).optional(),
});
export type DashboardBudget = z.output<typeof dashboardBudgetSchema>;

const dashboardSchema = z.object({
  organization: z.object({
    id: z.string(),
    name: z.string(),
    status: z.enum(["active", "awaiting_approval", "closed"]),
  }),
  role: z.enum(["admin", "manager", "employee", "volunteer"]),
  /** Null for volunteers, who see no requests. */
  counts: z
    .object({
      all: z.number(),
      /** What waits for a decision of this organization: pending without a question to the person, and processing. */
      due: z.number(),
      pending: z.number(),
      processing: z.number(),
      approved: z.number(),
      declined: z.number(),
    })
    .nullable(),
  budget: dashboardBudgetSchema,
  longest_waiting: dashboardRequestSchema.extend({ also_sent_to: z.array(z.string()) }).nullable(),
  recent: z.array(dashboardRequestSchema),
  requests: z.array(dashboardRequestSchema),
  categories: z.array(dashboardCategorySchema),
  /** Null for those who may not see the team. */
  team: z.array(dashboardMemberSchema).nullable(),
});
export type NonprofitDashboard = z.output<typeof dashboardSchema>;

export const nonprofitDashboardQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: [...reads.nonprofitDashboard, nonprofitId],
    queryFn: () => rpc("nonprofit_dashboard", { nonprofit_id: nonprofitId }, dashboardSchema),
    refetchInterval: whileDown,
  });
