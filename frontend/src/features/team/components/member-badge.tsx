import { t } from "@/messages";
import "@/messages/en/team";

export interface MemberState {
  is_active: boolean;
  /** 'pending' until the invitation is accepted. */
  user_id: string;
  /** When the invitation was mailed; null: it waits for the inviter's proof of address. */
  invited_at?: string | null;
}

/** Active, Inactive, Invited or not yet sent: word + shape + colour, as everywhere. */
export function MemberBadge({ member }: { member: MemberState }) {
  if (!member.is_active) {
    return (
      <span className="badge draft">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle className="ss" cx="8" cy="8" r="5.5" strokeDasharray="2.6 3.1" />
        </svg>
        {t("team.inactive")}
      </span>
    );
  }
  if (member.user_id === "pending") {
    return (
      <span className="badge pending">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle className="ss" cx="8" cy="8" r="5.5" />
        </svg>
        {t(member.invited_at === null ? "team.notSent" : "team.invited")}
      </span>
    );
  }
  return (
    <span className="badge approved">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <circle className="sf" cx="8" cy="8" r="6.5" />
        <path className="sk" d="M5 8.2l2.1 2.1L11 6.2" />
      </svg>
      {t("team.active")}
    </span>
  );
}
