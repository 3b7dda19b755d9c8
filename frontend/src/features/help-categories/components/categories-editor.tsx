/** A list and an add form. Without the right, only the list. */
import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { useForm } from "react-hook-form";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Field, Form } from "@/components/form";
import { SectionHead } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { EmptyState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { toast } from "@/lib/toast";
import { useFailureToast } from "@/lib/use-failure-toast";
import { t } from "@/messages";
import "@/messages/en/helpCategories";
import { helpCategoriesQuery, useAddCategory, useDeleteCategory, type HelpCategory } from "../api";
import { categorySchema, lenientCategorySchema, type CategoryForm } from "../schema";

const isTaken = (error: unknown) => (error as { code?: string } | null)?.code === "23505";

const blank: CategoryForm = { name: "", description: "" };

function AddForm({ nonprofitId, userId, lenient }: { nonprofitId: string; userId: string; lenient: boolean }) {
  const keptAs = `category-${nonprofitId}-${userId}`;
  const form = useForm<CategoryForm>({
    resolver: zodResolver(lenient ? lenientCategorySchema : categorySchema),
    mode: "onSubmit",
    shouldFocusError: false,
    defaultValues: readKept(keptAs, blank),
  });
  const forget = useKeptForm(form, keptAs);
  const startAgain = () => {
    form.reset(blank);
    forget();
  };
  const add = useAddCategory(nonprofitId);
  const submit = async (values: CategoryForm) => {
    if (values.name === "") return;
    try {
      await add.mutateAsync(values);
      toast({
        title: t("helpCategories.addedTitle"),
        description: t("helpCategories.addedBody", { name: values.name }),
      });
      startAgain();
      form.setFocus("name");
    } catch (error) {
      if (isTaken(error) && lenient) startAgain();
      else if (isTaken(error)) form.setError("name", { message: t("helpCategories.duplicate") });
      else
        toast({
          variant: "destructive",
          title: t("helpCategories.addErrorTitle"),
          description: t("helpCategories.addError"),
        });
    }
  };
  return (
    <section className="panel" aria-labelledby="add-category">
      <header>
        <h2 id="add-category">{t("helpCategories.addTitle")}</h2>
      </header>
      <div className="in">
        <Form
          form={form}
          onSubmit={submit}
          onInvalid={() => toast({ variant: "destructive", title: t("helpCategories.nameRequired") })}
          error={isTaken(add.error) ? null : add.error}
          errorTitle={t("helpCategories.addErrorTitle")}
        >
          <Field<CategoryForm> name="name" label={t("helpCategories.name")}>
            {(control) => <Input autoComplete="off" {...control} />}
          </Field>
          <Field<CategoryForm>
            name="description"
            label={t("helpCategories.description")}
            hint={t("helpCategories.descriptionHint")}
            optional
          >
            {(control) => <Input autoComplete="off" {...control} />}
          </Field>
          <Button
            type="submit"
            variant="primary"
            busy={add.isPending}
            busyLabel={t("helpCategories.adding")}
            className="sm:justify-self-start"
          >
            {t("helpCategories.add")}
          </Button>
        </Form>
      </div>
    </section>
  );
}

export interface CategoriesEditorProps {
  nonprofitId: string;
  userId: string;
  mayChange: boolean;
  /** Blank and duplicate names are ignored (the settings page) instead of refused. */
  lenient?: boolean;
}

export function CategoriesEditor({ nonprofitId, userId, mayChange, lenient = false }: CategoriesEditorProps) {
  const query = useQuery(helpCategoriesQuery(nonprofitId));
  useFailureToast(query.isError, t("helpCategories.loadErrorTitle"), t("helpCategories.loadError"));
  const remove = useDeleteCategory(nonprofitId);
  const [leaving, setLeaving] = useState<HelpCategory | null>(null);
  const confirm = () => {
    if (!leaving) return;
    remove.mutate(leaving.id, {
      onSuccess: () => {
        toast({
          title: t("helpCategories.deletedTitle"),
          description: t("helpCategories.deletedBody", { name: leaving.name }),
        });
        setLeaving(null);
      },
      onError: () =>
        toast({
          variant: "destructive",
          title: t("helpCategories.deleteErrorTitle"),
          description: t("helpCategories.deleteError"),
        }),
    });
  };
  return (
    <div className="two wide">
      <section>
        <SectionHead title={t("helpCategories.listTitle")} />
        <QueryView
          query={query}
          failedTitle={t("helpCategories.loadError")}
          empty={
            <EmptyState heading="h3" title={t("helpCategories.empty")}>
              {t("helpCategories.emptyBody")}
            </EmptyState>
          }
        >
          {(categories) => (
            <ul className="list ruled">
              {categories.map((category) => (
                <li key={category.id} className="flex items-center gap-4 py-3">
                  <div className="min-w-0 flex-1">
                    <strong className="block wrap-anywhere">{category.name}</strong>
                    {category.description ? (
                      <p className="text-ui text-soft wrap-anywhere">{category.description}</p>
                    ) : null}
                  </div>
                  {mayChange ? (
                    <Button
                      size="icon"
                      aria-label={t("helpCategories.deleteNamed", { name: category.name })}
                      onClick={() => setLeaving(category)}
                    >
                      <Trash2 aria-hidden="true" />
                    </Button>
                  ) : null}
                </li>
              ))}
            </ul>
          )}
        </QueryView>
      </section>
      {mayChange ? <AddForm nonprofitId={nonprofitId} userId={userId} lenient={lenient} /> : null}
      <ConfirmDialog
        open={leaving !== null}
        onOpenChange={(open) => (open ? undefined : setLeaving(null))}
        title={t("helpCategories.deleteTitle", { name: leaving?.name ?? "" })}
        description={t("helpCategories.deleteBody")}
        confirmLabel={t("helpCategories.deleteConfirm")}
        busyLabel={t("helpCategories.deleting")}
        busy={remove.isPending}
        onConfirm={confirm}
      />
    </div>
  );
}
