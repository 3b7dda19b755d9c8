import { useState } from "react";
import { AddressCodeForm } from "@/components/address-code-form";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { RadioGroup, RadioLine } from "@/components/ui/radio-group";
import type { AccountMatch as Match } from "@/lib/address-code";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import type { LinkedAccount } from "../answers";

export interface AccountMatchProps {
  email: string;
  /** The account to link the request to; null: none. */
  onChoose: (account: LinkedAccount | null) => void;
  onLeave: () => void;
}

/**
 * Verifies an address by a mailed code, then offers the accounts that use it. Whether an account
 * exists is not revealed before that.
 */
export function AccountMatch({ email, onChoose, onLeave }: AccountMatchProps) {
  const [found, setFound] = useState<{ proof: string; matches: Match[] } | null>(null);
  const [selected, setSelected] = useState("");

  if (found && found.matches.length === 0) {
    return (
      <section className="grid gap-6" aria-labelledby="match-title">
        <h2 id="match-title">{t("requestForm.matchTitle")}</h2>
        <Notice tone="info" role="status">
          {t("requestForm.noMatch")}
        </Notice>
        <div className="actions">
          <Button variant="primary" onClick={() => onChoose(null)}>
            {t("requestForm.matchContinue")}
          </Button>
        </div>
      </section>
    );
  }

  if (found) {
    const match = found.matches.find(({ id }) => id === selected);
    return (
      <section className="grid gap-6" aria-labelledby="match-title">
        <h2 id="match-title">{t("requestForm.matchTitle")}</h2>
        <p role="status">{t("requestForm.matchFound")}</p>
        <RadioGroup aria-label={t("requestForm.matchLegend")} value={selected} onValueChange={setSelected}>
          {found.matches.map((account) => (
            <RadioLine key={account.id} value={account.id}>
              <strong>{account.fullName || account.email}</strong>
              <span className="block text-ui text-soft">
                {account.email} · {t("requestForm.matchEmail")}
              </span>
            </RadioLine>
          ))}
        </RadioGroup>
        <div className="actions">
          <Button
            variant="primary"
            disabled={!match}
            onClick={() => match && onChoose({ id: match.id, fullName: match.fullName, email, proof: found.proof })}
          >
            {t("requestForm.useSelected")}
          </Button>
          <Button onClick={() => onChoose(null)}>{t("requestForm.createNew")}</Button>
        </div>
      </section>
    );
  }

  return (
    <section aria-labelledby="match-title">
      <h2 id="match-title">{t("requestForm.matchTitle")}</h2>
      <AddressCodeForm
        email={email}
        failedTitle={t("requestForm.matchError")}
        onProved={(answer) => {
          setFound(answer);
          setSelected(answer.matches[0]?.id ?? "");
        }}
        leaveLabel={t("requestForm.skipMatch")}
        onLeave={onLeave}
      />
    </section>
  );
}
