import { zodResolver } from "@hookform/resolvers/zod";
import { RadioGroup as Radix } from "radix-ui";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { cn } from "@/lib/cn";
import type { NonprofitRole } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { useChooseNonprofitRole } from "../api";
import { nonprofitRoles, roleChoiceSchema, type RoleChoice as Values } from "../schema";

const words = {
  admin: { title: "organization.roleAdmin", body: "organization.roleAdminBody" },
  manager: { title: "organization.roleManager", body: "organization.roleManagerBody" },
  employee: { title: "organization.roleEmployee", body: "organization.roleEmployeeBody" },
} as const;

export interface RoleChoiceProps {
  userId: string;
  current: NonprofitRole | null;
  onChosen: () => void | Promise<void>;
}

/** Three cards that wait for Continue. */
export function RoleChoice({ userId, current, onChosen }: RoleChoiceProps) {
  const form = useForm<Values>({
    resolver: zodResolver(roleChoiceSchema),
    shouldFocusError: false,
    defaultValues: { role: current === "volunteer" ? undefined : (current ?? undefined) },
  });
  const choose = useChooseNonprofitRole();
  return (
    <Form
      form={form}
      error={choose.error}
      errorTitle={t("organization.roleFailedTitle")}
      onInvalid={() => toast({ variant: "destructive", title: t("organization.roleRequired") })}
      onSubmit={async ({ role }) => {
        await choose.mutateAsync({ userId, role }).then(onChosen, () => undefined);
      }}
    >
      <Field<Values>
        name="role"
        as="group"
        label={<span className="visually-hidden">{t("organization.roleLegend")}</span>}
      >
        {({ id, value, onChange, onBlur, ref }) => (
          <Radix.Root
            className="choices"
            aria-label={t("organization.roleLegend")}
            value={String(value)}
            onValueChange={onChange}
            onBlur={onBlur}
            ref={ref as React.Ref<HTMLDivElement>}
          >
            {nonprofitRoles.map((role, index) => (
              <Radix.Item
                key={role}
                value={role}
                id={index === 0 ? id : undefined}
                className={cn("choice tick-card", value === role && "on")}
              >
                <span className={cn("box round", value === role && "on")} aria-hidden="true" />
                <span className="min-w-0">
                  <strong>{t(words[role].title)}</strong>
                  <span className="d">{t(words[role].body)}</span>
                </span>
              </Radix.Item>
            ))}
          </Radix.Root>
        )}
      </Field>
      <p className="text-sm text-soft">{t("organization.roleNote")}</p>
      <Button
        type="submit"
        variant="primary"
        size="big"
        busy={form.formState.isSubmitting}
        busyLabel={t("common.saving")}
        className="sm:justify-self-start"
      >
        {t("common.continue")}
      </Button>
    </Form>
  );
}
