/** Schemas of the database's answers about requests for an organization's staff (`docs/database.md`). */
import { z } from "zod";

const status = z.enum(["pending", "processing", "approved", "declined", "withdrawn"]);

/** `taken`: another nonprofit has it; the person is then not shown. */
const incomingStatus = z.enum([...status.options, "taken"]);
export type IncomingStatus = z.output<typeof incomingStatus>;

/** An organization's state for a request. */
const partState = z.enum(["open", "claimed", "taken", "denied", "withdrawn", "closed"]);
export type PartState = z.output<typeof partState>;

export const incomingRowSchema = z.object({
  request_id: z.string(),
  nonprofit_id: z.string(),
  request_number: z.string(),
  category: z.string(),
  /** 'Not specified' or '$N'. */
  amount: z.string(),
  amount_requested: z.number().nullable(),
  amount_approved: z.number().nullable(),
  status: incomingStatus,
  part: partState,
  needs_more_proof: z.boolean(),
  opened: z.boolean(),
  submitted_at: z.string(),
  /** Null if no decision of this organization is open. */
  waiting_days: z.number().nullable(),
  requester_name: z.string().nullable(),
  /** Name of the assigned member. */
  assigned_to: z.string().nullable(),
});
export type IncomingRow = z.output<typeof incomingRowSchema>;

export const countsSchema = z.object({
  all: z.number(),
  pending: z.number(),
  processing: z.number(),
  approved: z.number(),
  declined: z.number(),
  /** The number that need a decision of this organization. */
  due: z.number(),
});
export type Counts = z.output<typeof countsSchema>;

const documentSchema = z.object({
  id: z.string(),
  name: z.string(),
  path: z.string(),
  mime_type: z.string(),
  size_bytes: z.number(),
  kind: z.enum(["submission", "additional"]),
  created_at: z.string(),
});
export type RequestDocument = z.output<typeof documentSchema>;

const timelineEventSchema = z.object({
  type: z.enum([
    "submitted",
    "opened",
    "info_requested",
    "info_answered",
    "documents_added",
    "first_approval",
    "approved",
    "denied",
    "declined",
    "released",
    "withdrawn",
    "claimed_by_account",
    "paid",
    "corrected",
  ]),
  actor: z.enum(["requester", "nonprofit", "system"]),
  /** The member of this organization who did it. */
  staff_name: z.string().nullable(),
  nonprofit_name: z.string().nullable(),
  note: z.string().nullable(),
  amount: z.number().nullable(),
  created_at: z.string(),
});
export type TimelineEvent = z.output<typeof timelineEventSchema>;

const requestSchema = z.object({
  id: z.string(),
  request_number: z.string(),
  category: z.string(),
  title: z.string().nullable(),
  description: z.string(),
  amount: z.string(),
  amount_requested: z.number().nullable(),
  amount_approved: z.number().nullable(),
  status,
  claimed_by: z.string().nullable(),
  needs_more_proof: z.boolean(),
  pending_notes: z.string().nullable(),
  denial_reason: z.string().nullable(),
  first_name: z.string(),
  last_name: z.string(),
  email: z.string(),
  phone: z.string(),
  address: z.string(),
  city: z.string(),
  state: z.string(),
  postal_code: z.string(),
  urgency: z.enum(["low", "medium", "high"]).nullable(),
  preferred_contact: z.enum(["email", "phone"]).nullable(),
  submitted_at: z.string(),
  decided_at: z.string().nullable(),
  first_approved_by: z.string().nullable(),
  first_approved_at: z.string().nullable(),
});
export type RequestRow = z.output<typeof requestSchema>;

const otherNonprofitSchema = z.object({ id: z.string(), name: z.string(), state: partState });
export type OtherNonprofit = z.output<typeof otherNonprofitSchema>;

const abilitiesSchema = z.object({
  approve: z.boolean(),
  deny: z.boolean(),
  ask_info: z.boolean(),
  second_approval: z.boolean(),
});
export type Abilities = z.output<typeof abilitiesSchema>;

/** The assignee of a request, and possible ones. */
export const lookedAfterSchema = z.object({
  assigned_to: z.object({ id: z.string(), name: z.string() }).nullable(),
  colleagues: z.array(z.object({ id: z.string(), name: z.string(), you: z.boolean() })),
});

/** A request as its staff may read it. */
const visibleRequestSchema = lookedAfterSchema.extend({
  visible: z.literal(true),
  request: requestSchema,
  documents: z.array(documentSchema),
  timeline: z.array(timelineEventSchema),
  part: partState,
  /** Somebody of this organization has read it before. */
  opened: z.boolean(),
  also_sent_to: z.array(otherNonprofitSchema),
  /** Dollars; null for those who may not see the budget. */
  budget_remaining: z.number().nullable(),
  second_approval_above: z.number().nullable(),
  /** Name of the first approver. */
  first_approver: z.string().nullable(),
  /** Dollars paid out on it. */
  paid: z.number(),
  /** Earlier requests of the same address to this organization. */
  history_count: z.number(),
  /** The reader's own request: a colleague has to decide, and `can` is false for everything. */
  own: z.boolean(),
  can: abilitiesSchema,
});
export type VisibleRequest = z.output<typeof visibleRequestSchema>;

/** Taken by another nonprofit: shown without the person. */
const takenRequestSchema = z.object({
  visible: z.literal(false),
  request: z.object({
    id: z.string(),
    request_number: z.string(),
    category: z.string(),
    status: incomingStatus,
    submitted_at: z.string(),
  }),
});
export type TakenRequest = z.output<typeof takenRequestSchema>;

export const openedRequestSchema = z.discriminatedUnion("visible", [visibleRequestSchema, takenRequestSchema]);
export type OpenedRequest = z.output<typeof openedRequestSchema>;

export const approvalSchema = z.object({
  status: z.enum(["approved", "processing"]),
  /** '$250'. */
  amount: z.string(),
  second_approval_needed: z.boolean(),
});
export type Approval = z.output<typeof approvalSchema>;
