import { zodResolver } from "@hookform/resolvers/zod";
import { useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Dialog, DialogAnswers, DialogContent } from "@/components/ui/dialog";
import { Input } from "@/components/ui/input";
import { errorMessage, fieldErrors } from "@/lib/errors";
import { saveFile } from "@/lib/save-file";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import { useCloseAccount } from "./api";
import { readMyData } from "./my-data";
import { closeSchema } from "./schema";

/** Downloads all data about the person. */
function TakeAlong() {
  const job = useMutation({
    mutationFn: readMyData,
    onSuccess: (archive) => {
      const day = new Date().toISOString().slice(0, 10);
      saveFile(t("account.dataFile", { date: day }), [archive.slice().buffer], "application/zip");
      toast({ title: t("account.dataSaved"), description: t("account.dataSavedBody") });
    },
    onError: (error) =>
      toast({ variant: "destructive", title: t("account.dataFailed"), description: errorMessage(error) }),
  });
  return (
    <section aria-labelledby="take-along">
      <h2 id="take-along" className="text-lg">
        {t("account.dataTitle")}
      </h2>
      <p className="mt-1 mb-4 text-soft">{t("account.dataBody")}</p>
      <Button busy={job.isPending} busyLabel={t("account.dataBusy")} onClick={() => job.mutate()}>
        <Download aria-hidden="true" />
        {t("account.dataButton")}
      </Button>
    </section>
  );
}

function CloseDialog({ email, onClosed }: { email: string; onClosed: () => void | Promise<void> }) {
  const close = useCloseAccount();
  const form = useForm({
    resolver: zodResolver(closeSchema(email)),
    mode: "onSubmit",
    shouldFocusError: false,
    defaultValues: { email: "" },
  });
  return (
    <DialogContent title={t("account.closeTitle")} role="alertdialog" dirty={close.isPending}>
      <Form
        form={form}
        error={close.error}
        errorTitle={t("account.closeFailed")}
        onSubmit={(values) =>
          close.mutate(values.email, {
            onSuccess: onClosed,
            onError: (error) => {
              const { email: wrong } = fieldErrors(error);
              if (wrong) form.setError("email", { message: wrong }, { shouldFocus: true });
            },
          })
        }
      >
        <div className="grid gap-4">
          <div>
            <h3 className="text-base">{t("account.closeGoes")}</h3>
            <p className="mt-1 text-soft">{t("account.closeGoesBody")}</p>
          </div>
          <div>
            <h3 className="text-base">{t("account.closeStays")}</h3>
            <p className="mt-1 text-soft">{t("account.closeStaysBody")}</p>
          </div>
        </div>
        <Field name="email" label={t("account.closeEmail")} hint={t("account.closeEmailHint", { email })}>
          {(control) => <Input {...control} type="email" autoComplete="off" />}
        </Field>
        <DialogAnswers
          submit={t("account.closeButton")}
          variant="danger"
          busy={close.isPending}
          busyLabel={t("account.closing")}
        />
      </Form>
    </DialogContent>
  );
}

/** The stored personal data: download and deletion. `onClosed` leaves for a public page. */
export function PrivacyPanel({ email, onClosed }: { email: string; onClosed: () => void | Promise<void> }) {
  const [asking, setAsking] = useState(false);
  return (
    <div className="grid gap-8">
      <TakeAlong />
      <section aria-labelledby="close-account" className="border-t border-line pt-6">
        <h2 id="close-account" className="text-lg">
          {t("account.closeHeading")}
        </h2>
        <p className="mt-1 mb-4 text-soft">{t("account.closeLead")}</p>
        <Button variant="dangerQuiet" onClick={() => setAsking(true)}>
          {t("account.closeHeading")}
        </Button>
        <Dialog open={asking} onOpenChange={setAsking}>
          {asking ? <CloseDialog email={email} onClosed={onClosed} /> : null}
        </Dialog>
      </section>
    </div>
  );
}
