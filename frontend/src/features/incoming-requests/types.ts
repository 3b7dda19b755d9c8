/** What the database says of a request to the staff of one organization (`docs/database.md`). */
import type { RequestStatus } from "@/components/status-badge";

/** `taken`: another nonprofit has it; the person is then not shown. */
export type IncomingStatus = Exclude<RequestStatus, "draft" | "in_review"> | "taken";

export interface IncomingRow {
  request_id: string;
  nonprofit_id: string;
  request_number: string;
  category: string;
  /** 'Not specified' or '$N'. */
  amount: string;
  amount_requested: number | null;
  amount_approved: number | null;
  status: IncomingStatus;
  part: PartState;
  needs_more_proof: boolean;
  opened: boolean;
  submitted_at: string;
  /** Null once nobody waits for a decision of this organization. */
  waiting_days: number | null;
  requester_name: string | null;
}

/** How an organization stands to a request. */
export type PartState = "open" | "claimed" | "taken" | "denied" | "withdrawn" | "closed";

export interface Counts {
  all: number;
  pending: number;
  processing: number;
  approved: number;
  declined: number;
}

export interface RequestDocument {
  id: string;
  name: string;
  path: string;
  mime_type: string;
  size_bytes: number;
  kind: "submission" | "additional";
  created_at: string;
}

export interface TimelineEvent {
  type:
    | "submitted"
    | "opened"
    | "info_requested"
    | "info_answered"
    | "documents_added"
    | "first_approval"
    | "approved"
    | "denied"
    | "declined"
    | "released"
    | "withdrawn"
    | "claimed_by_account"
    | "paid";
  actor: "requester" | "nonprofit" | "system";
  /** Who of this organization did it. */
  staff_name: string | null;
  nonprofit_name: string | null;
  note: string | null;
  amount: number | null;
  created_at: string;
}

export interface RequestRow {
  id: string;
  request_number: string;
  category: string;
  title: string | null;
  description: string;
  amount: string;
  amount_requested: number | null;
  amount_approved: number | null;
  status: Exclude<RequestStatus, "draft" | "in_review">;
  claimed_by: string | null;
  needs_more_proof: boolean;
  pending_notes: string | null;
  denial_reason: string | null;
  first_name: string;
  last_name: string;
  email: string;
  phone: string;
  address: string;
  city: string;
  state: string;
  postal_code: string;
  urgency: "low" | "medium" | "high" | null;
  preferred_contact: "email" | "phone" | null;
  submitted_at: string;
  decided_at: string | null;
  first_approved_by: string | null;
  first_approved_at: string | null;
}

export interface OtherNonprofit {
  id: string;
  name: string;
  state: PartState;
}
