import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useForm, useFormContext, useWatch } from "react-hook-form";
import { z } from "zod";
import { Field, Form } from "@/components/form";
import { QueryView } from "@/components/query-view";
import { SearchField } from "@/components/search-field";
import { Button } from "@/components/ui/button";
import { Dialog, DialogAnswers, DialogClose, DialogContent, DialogTrigger } from "@/components/ui/dialog";
import { Input } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { Select } from "@/components/ui/select";
import { fieldErrors } from "@/lib/errors";
import { formatMoney } from "@/lib/format";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { useSession } from "@/lib/session";
import { useSendKey } from "@/lib/use-send-key";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { optionalAmount, parseDollars } from "@/schemas/amount";
import { email, text, upTo } from "@/schemas/atoms";
import { MOST_NAMES, nonprofitNamesQuery, usePledge, type NonprofitName, type NonprofitNames } from "./api";

const schema = z.object({
  nonprofit_id: text(1, t("marketing.pledgeNonprofitRequired")),
  /** Its name, for the list that does not have it (any more). */
  nonprofit: z.string(),
  amount: optionalAmount().refine((value) => (parseDollars(value) ?? 0) > 0, t("marketing.pledgeAmountRequired")),
  email: email(),
  name: upTo(200),
});
type Values = z.infer<typeof schema>;

/** A signed-in donor, whose data is not asked again. */
export interface KnownDonor {
  email: string;
  fullName: string;
}

interface Found extends NonprofitNames {
  /** Null where all of them stand in the list. */
  search: string | null;
  onSearch: (words: string) => void;
}

/** Whom to give to: a list, and where that would be too long, a search above it. What was chosen stays in it. */
function NonprofitField({ names, more, search, onSearch }: Found) {
  const { setValue } = useFormContext<Values>();
  const [id, name] = useWatch<Values, ["nonprofit_id", "nonprofit"]>({ name: ["nonprofit_id", "nonprofit"] });
  const kept: NonprofitName[] = id === "" || names.some((one) => one.id === id) ? [] : [{ id, name }];
  const note = more
    ? t("marketing.pledgeFirst", { count: MOST_NAMES })
    : names.length === 0
      ? t("marketing.pledgeNone")
      : "";
  return (
    <>
      {search === null ? null : (
        <div className="field">
          <SearchField
            aria-label={t("marketing.pledgeSearch")}
            placeholder={t("marketing.pledgeSearch")}
            value={search}
            autoComplete="off"
            onSearch={onSearch}
          />
          <p className="hint" role="status">
            {note}
          </p>
        </div>
      )}
      <Field name="nonprofit_id" label={t("marketing.pledgeNonprofit")}>
        {(control) => (
          <Select
            options={[...kept, ...names].map(({ id, name }) => ({ value: id, label: name }))}
            {...control}
            onChange={(id) => {
              setValue("nonprofit", names.find((one) => one.id === id)?.name ?? name);
              control.onChange(id);
            }}
          />
        )}
      </Field>
    </>
  );
}

function PledgeForm({
  nonprofits,
  donor,
  onDirty,
}: {
  nonprofits: Found;
  donor?: KnownDonor;
  onDirty: (dirty: boolean) => void;
}) {
  const pledge = usePledge();
  const { user } = useSession();
  const keptAs = `pledge-${user?.id ?? "guest"}`;
  const { take, refused } = useSendKey(keptAs);
  const form = useForm<Values>({
    resolver: zodResolver(schema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: {
      ...readKept<Values>(keptAs, { nonprofit_id: "", nonprofit: "", amount: "", email: "", name: "" }),
      // not asked, so never what was typed elsewhere
      ...(donor ? { email: donor.email, name: donor.fullName } : {}),
    },
  });
  const forget = useKeptForm(form, keptAs);
  if (pledge.isSuccess) {
    return (
      <Notice tone="good" role="status" title={t("marketing.pledgeDone")}>
        <p>
          {t("marketing.pledgeDoneBody", {
            nonprofit: pledge.data.nonprofit,
            amount: formatMoney(pledge.data.amount),
            email: form.getValues("email"),
          })}
        </p>
        <DialogClose asChild>
          <Button className="mt-3">{t("common.close")}</Button>
        </DialogClose>
      </Notice>
    );
  }
  const asked = fieldErrors(pledge.error);
  return (
    <Form
      form={form}
      error={pledge.error && Object.keys(asked).length === 0 ? pledge.error : null}
      errorTitle={t("marketing.pledgeFailed")}
      onChange={() => onDirty(true)}
      onSubmit={({ nonprofit: _name, ...values }) =>
        pledge.mutate(
          { ...values, amount: parseDollars(values.amount) ?? 0, key: take() },
          {
            onSuccess: () => {
              forget();
              onDirty(false);
            },
            onError: (error) => {
              refused(error);
              for (const [name, message] of Object.entries(fieldErrors(error))) {
                form.setError(name as keyof Values, { message });
              }
            },
          },
        )
      }
    >
      <NonprofitField {...nonprofits} />
      <Field name="amount" label={t("marketing.pledgeAmount")}>
        {(control) => (
          <span className="affix money block">
            <span aria-hidden="true">$</span>
            <Input inputMode="decimal" autoComplete="off" {...control} />
          </span>
        )}
      </Field>
      {donor ? null : (
        <>
          <Field name="email" label={t("marketing.pledgeEmail")} hint={t("marketing.pledgeEmailHint")}>
            {(control) => <Input type="email" autoComplete="email" inputMode="email" {...control} />}
          </Field>
          <Field name="name" label={t("marketing.pledgeName")} optional>
            {(control) => <Input autoComplete="name" {...control} />}
          </Field>
        </>
      )}
      <DialogAnswers
        submit={t("marketing.pledgeSubmit")}
        busy={pledge.isPending}
        busyLabel={t("marketing.pledgeSending")}
        onCancel={forget}
      />
    </Form>
  );
}

/** The dialog's content: a pledge, not a payment. */
export function PledgeContent({ donor }: { donor?: KnownDonor }) {
  const [dirty, setDirty] = useState(false);
  const [search, setSearch] = useState<string | null>(null);
  const nonprofits = useQuery(nonprofitNamesQuery(search ?? ""));
  // from the first list that is too long on
  if (search === null && nonprofits.data?.more) setSearch("");
  return (
    <DialogContent title={t("marketing.pledgeTitle")} description={t("marketing.pledgeBody")} dirty={dirty}>
      <QueryView
        query={nonprofits}
        failedTitle={t("marketing.pledgeNotLoaded")}
        empty={<Notice>{t("marketing.pledgeNoNonprofits")}</Notice>}
        isEmpty={({ names }) => search === null && names.length === 0}
      >
        {(data) => (
          <PledgeForm nonprofits={{ ...data, search, onSearch: setSearch }} donor={donor} onDirty={setDirty} />
        )}
      </QueryView>
    </DialogContent>
  );
}

/** The pricing page's 'Make a Donation'. */
export function PledgeDialog() {
  return (
    <Dialog>
      <DialogTrigger asChild>
        <Button size="big">{t("marketing.makeDonation")}</Button>
      </DialogTrigger>
      <PledgeContent />
    </Dialog>
  );
}
