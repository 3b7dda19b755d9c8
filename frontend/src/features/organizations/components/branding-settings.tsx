import { useState } from "react";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { FileUpload } from "@/components/file-upload";
import { Avatar } from "@/components/ui/avatar";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { errorMessage } from "@/lib/errors";
import { LOGO_FILE_RULES } from "@/lib/files";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { useRemoveLogo, useSaveLogo, type OrganizationDetails } from "../api";

/** The logo: .jpg, .jpeg or .png, at most 5 MB, one file. */
export function BrandingSettings({ details, mayEdit }: { details: OrganizationDetails; mayEdit: boolean }) {
  const [files, setFiles] = useState<File[]>([]);
  const [asking, setAsking] = useState(false);
  const save = useSaveLogo(details.id);
  const remove = useRemoveLogo(details.id);
  const file = files[0];
  const failed = (error: unknown) =>
    toast({
      variant: "destructive",
      title: t("organization.logoFailedTitle"),
      description: errorMessage(error, "organization.logoFailed"),
    });
  return (
    <div className="grid max-w-2xl gap-6">
      {mayEdit ? null : (
        <Notice tone="info" title={t("organization.readOnlyTitle")}>
          {t("organization.readOnlyGeneral")}
        </Notice>
      )}
      <section className="grid gap-3" aria-labelledby="logo-heading">
        <h2 id="logo-heading" className="text-lg">
          {t("organization.logo")}
        </h2>
        {details.logoUrl ? (
          <img
            src={details.logoUrl}
            alt={t("organization.logoAlt", { name: details.name })}
            width={128}
            height={128}
            className="size-32 rounded-lg border border-line bg-raised object-contain"
          />
        ) : (
          <div className="flex items-center gap-4">
            <Avatar name={details.name} className="size-16! rounded-lg! text-xl!" />
            <p className="text-soft">{t("organization.logoNone")}</p>
          </div>
        )}
      </section>
      {mayEdit ? (
        <>
          <FileUpload
            label={t("organization.logo")}
            hint={t("organization.logoHint")}
            rules={LOGO_FILE_RULES}
            files={files}
            onChange={setFiles}
            disabled={save.isPending}
          />
          <div className="actions">
            {file ? (
              <Button
                variant="primary"
                busy={save.isPending}
                busyLabel={t("common.saving")}
                onClick={() => {
                  save.mutate(
                    { file, previous: details.logo_path },
                    {
                      onSuccess: () => {
                        setFiles([]);
                        toast({ title: t("organization.logoSaved"), description: t("organization.logoSavedBody") });
                      },
                      onError: failed,
                    },
                  );
                }}
              >
                {t("organization.logoSave")}
              </Button>
            ) : null}
            {details.logo_path ? (
              <Button variant="dangerQuiet" onClick={() => setAsking(true)}>
                {t("organization.logoRemove")}
              </Button>
            ) : null}
          </div>
        </>
      ) : null}
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t("organization.logoRemoveTitle")}
        description={t("organization.logoRemoveBody")}
        confirmLabel={t("organization.logoRemove")}
        busyLabel={t("organization.logoRemoving")}
        busy={remove.isPending}
        onConfirm={() => {
          if (!details.logo_path) return;
          remove.mutate(details.logo_path, {
            onSuccess: () => {
              setAsking(false);
              toast({ title: t("organization.logoRemoved") });
            },
            onError: failed,
          });
        }}
      />
    </div>
  );
}
