/** Adding and editing a member. */
import { zodResolver } from "@hookform/resolvers/zod";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useForm, useWatch } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { DialogAnswers, DialogContent } from "@/components/ui/dialog";
import { Input } from "@/components/ui/input";
import { Select } from "@/components/ui/select";
import { useEditForm } from "@/lib/edit-form";
import { errorHint, isNotFound } from "@/lib/errors";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/team";
import { teamQuery, useAddMember, useChangeMember, type Member } from "../api";
import {
  addMemberSchema,
  allRoles,
  editMemberSchema,
  offeredRoles,
  type AddMemberForm,
  type EditMemberForm,
} from "../schema";

const roleOptions = (roles: readonly Member["role"][]) =>
  roles.map((role) => ({ value: role, label: t(`team.role.${role}`) }));

/** A second row with the same address breaks a unique index. */
const isTaken = (error: unknown) => (error as { code?: string }).code === "23505";

const missing = () => toast({ variant: "destructive", title: t("team.missingTitle"), description: t("team.missing") });

export interface AddMemberProps {
  nonprofitId: string;
  userId: string;
  /** The reader's own address is proved, so the invitation leaves at once. */
  proved: boolean;
  onClose: () => void;
}

export function AddMember({ nonprofitId, userId, proved, onClose }: AddMemberProps) {
  const keptAs = `add-member-${nonprofitId}-${userId}`;
  const form = useForm<AddMemberForm>({
    resolver: zodResolver(addMemberSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept<AddMemberForm>(keptAs, { full_name: "", email: "", role: "employee" }),
  });
  const forget = useKeptForm(form, keptAs);
  const add = useAddMember(nonprofitId);
  const role = useWatch({ control: form.control, name: "role" });
  const submit = async (values: AddMemberForm) => {
    try {
      await add.mutateAsync(values);
      forget();
      toast({ title: t("team.addedTitle"), description: t(proved ? "team.addedBody" : "team.addedWaits", values) });
      onClose();
    } catch (error) {
      if (isTaken(error)) form.setError("email", { message: t("team.alreadyMember") });
      else toast({ variant: "destructive", title: t("team.addErrorTitle"), description: t("team.addError") });
    }
  };
  return (
    <DialogContent title={t("team.addTitle")} description={t("team.addBody")} dirty={form.formState.isDirty}>
      <Form
        form={form}
        onSubmit={submit}
        onInvalid={missing}
        error={add.error && !isTaken(add.error) ? add.error : null}
        errorTitle={t("team.addErrorTitle")}
      >
        <Field<AddMemberForm> name="full_name" label={t("team.fullName")}>
          {(control) => <Input autoComplete="off" {...control} />}
        </Field>
        <Field<AddMemberForm> name="email" label={t("team.email")}>
          {(control) => <Input type="email" autoComplete="off" autoCapitalize="none" spellCheck={false} {...control} />}
        </Field>
        <Field<AddMemberForm> name="role" label={t("team.role")} hint={t(`team.roleHint.${role}`)}>
          {(control) => <Select options={roleOptions(offeredRoles)} {...control} />}
        </Field>
        <DialogAnswers
          submit={t("team.addConfirm")}
          busy={add.isPending}
          busyLabel={t("team.adding")}
          onCancel={forget}
        />
      </Form>
    </DialogContent>
  );
}

const editable = ({ full_name, role }: Member): EditMemberForm => ({ full_name, role });

export function EditMember({
  nonprofitId,
  userId,
  member,
  onClose,
}: {
  nonprofitId: string;
  userId: string;
  member: Member;
  onClose: () => void;
}) {
  const row = useMemo(() => editable(member), [member]);
  const { form, attempt, meet, discard } = useEditForm<EditMemberForm>({
    row,
    keptAs: `edit-member-${member.id}-${userId}`,
    resolver: zodResolver(editMemberSchema),
    mode: "onTouched",
    shouldFocusError: false,
  });
  const change = useChangeMember(nonprofitId);
  const { refresh } = useSession();
  const cache = useQueryClient();
  const role = useWatch({ control: form.control, name: "role" });
  const submit = async (values: EditMemberForm) => {
    const { changed, seen, succeeded } = attempt(values);
    try {
      const saved =
        Object.keys(changed).length === 0
          ? member
          : await change.mutateAsync({ id: member.id, seenRole: seen.role, ...changed });
      succeeded();
      toast({
        title: t("team.updatedTitle"),
        description: t("team.updatedBody", { name: saved.full_name, role: t(`team.role.${saved.role}`) }),
      });
      onClose();
      // another role of one's own has other pages
      if (member.user_id === userId && changed.role) void refresh().catch(() => undefined);
    } catch (error) {
      // the team has been read again by now
      const now = cache.getQueryData(teamQuery(nonprofitId).queryKey)?.find(({ id }) => id === member.id);
      const theirs = isNotFound(error) && now ? meet(editable(now)).role : undefined;
      if (theirs) {
        form.setError("role", { message: t("team.roleChanged", { role: t(`team.role.${theirs}`) }) });
      } else if (errorHint(error) !== "last_admin") {
        toast({ variant: "destructive", title: t("team.updateErrorTitle"), description: t("team.updateError") });
      }
    }
  };
  return (
    <DialogContent
      title={t("team.editTitle", { name: member.full_name || member.email })}
      description={member.email}
      dirty={form.formState.isDirty}
    >
      <Form
        form={form}
        onSubmit={submit}
        onInvalid={missing}
        error={form.formState.errors.role ? null : change.error}
        errorTitle={t("team.updateErrorTitle")}
      >
        <Field<EditMemberForm> name="full_name" label={t("team.fullName")}>
          {(control) => <Input autoComplete="off" {...control} />}
        </Field>
        <Field<EditMemberForm> name="role" label={t("team.role")} hint={t(`team.roleHint.${role}`)}>
          {(control) => <Select options={roleOptions(allRoles)} {...control} />}
        </Field>
        <DialogAnswers
          submit={t("team.save")}
          busy={change.isPending}
          busyLabel={t("common.saving")}
          onCancel={discard}
        />
      </Form>
    </DialogContent>
  );
}
