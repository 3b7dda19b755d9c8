import { Upload } from "lucide-react";
import { useRef } from "react";
import { Avatar } from "@/components/ui/avatar";
import { Button } from "@/components/ui/button";
import { PHOTO_FILE_RULES, sortFiles } from "@/lib/files";
import type { AppUser } from "@/lib/session";
import { isWrongFileType } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import "@/messages/en/files";
import { useChangePhoto } from "./api";

/** The profile card's photo: any picture, changed at once. */
export function PhotoCard({ user, photoPath }: { user: AppUser; photoPath: string | null }) {
  const input = useRef<HTMLInputElement>(null);
  const change = useChangePhoto(user.id);

  const choose = (file: File | undefined) => {
    if (!file) return;
    const { rejections } = sortFiles([file], 0, PHOTO_FILE_RULES);
    const reason = rejections[0]?.reason;
    if (reason) {
      toast({
        variant: "destructive",
        title: t(reason === "type" ? "files.invalidType" : "files.tooLarge"),
        description:
          reason === "type"
            ? t("files.invalidTypeBody", { file: file.name })
            : t("files.tooLargeBody", { file: file.name, size: PHOTO_FILE_RULES.maxBytes / 1024 / 1024 }),
      });
      return;
    }
    change.mutate(
      { file, before: photoPath },
      {
        onSuccess: () => toast({ title: t("account.photoUpdated") }),
        onError: (error) =>
          toast({
            variant: "destructive",
            ...(isWrongFileType(error)
              ? { title: t("files.invalidType"), description: t("files.invalidTypeBody", { file: file.name }) }
              : { title: t("account.photoFailed"), description: t("account.photoFailedBody") }),
          }),
      },
    );
  };

  return (
    <div className="flex items-center gap-5">
      <Avatar name={user.fullName} src={user.photoUrl} className="size-20! text-2xl!" />
      <div>
        <input
          ref={input}
          type="file"
          accept="image/*"
          className="visually-hidden"
          tabIndex={-1}
          aria-label={t("account.photoChange")}
          onChange={(event) => {
            choose(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
        <Button busy={change.isPending} busyLabel={t("account.photoChanging")} onClick={() => input.current?.click()}>
          <Upload aria-hidden="true" />
          {t("account.photoChange")}
        </Button>
        <p className="small soft mt-2">{t("account.photoHint")}</p>
      </div>
    </div>
  );
}
