/**
 * Forms: react-hook-form with a zod schema. `Form` provides the form and its error summary,
 * `Field` wires label, hint and error to one control once.
 */
import { CircleAlert } from "lucide-react";
import {
  createContext,
  use,
  useEffect,
  useId,
  useRef,
  type ComponentProps,
  type FormEvent,
  type MouseEvent,
  type ReactNode,
  type Ref,
} from "react";
import {
  FormProvider,
  useController,
  useFormContext,
  useFormState,
  type FieldPath,
  type FieldValues,
  type SubmitErrorHandler,
  type SubmitHandler,
  type UseFormReturn,
} from "react-hook-form";
import { cn } from "@/lib/cn";
import { errorMessage } from "@/lib/errors";
import { t, type MessageKey } from "@/messages";
import { Notice } from "./ui/notice";

const FormIdContext = createContext("form");

/** The DOM id of a field's control: what the summary's links point to. */
const controlId = (formId: string, name: string) => `${formId}-${name.replace(/\./g, "-")}`;

export interface FormProps<T extends FieldValues, O extends FieldValues = T> extends Omit<
  ComponentProps<"form">,
  "onSubmit" | "onInvalid" | "children"
> {
  form: UseFormReturn<T, unknown, O>;
  onSubmit: SubmitHandler<O>;
  /** Called when the schema refuses the answers (a toast of the spec); the fields show their own errors. */
  onInvalid?: SubmitErrorHandler<T>;
  children: ReactNode;
  /** The server's error for the last attempt, shown above the fields; nothing typed is lost. */
  error?: unknown;
  /** Title of that notice. */
  errorTitle?: string;
  /** The fallback if the error has no text. */
  errorFallback?: MessageKey;
}

/**
 * Pressing 'send' must not blur the field first: its error would appear above the button and move the button away
 * from the pointer before the click completes.
 */
function keepFocus(event: MouseEvent<HTMLFormElement>) {
  if (event.target instanceof Element && event.target.closest("button[type=submit]")) event.preventDefault();
}

/** Make the form with `useForm({ resolver: zodResolver(schema), mode: "onTouched", shouldFocusError: false })`. */
export function Form<T extends FieldValues, O extends FieldValues = T>({
  form,
  onSubmit,
  onInvalid,
  children,
  error,
  errorTitle,
  errorFallback,
  className,
  ...props
}: FormProps<T, O>) {
  const formId = useId();
  const taken = useRef(false);
  /** A double tap counts once: its second tap comes before the button can show that the first is being handled. */
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (taken.current) return;
    taken.current = true;
    try {
      await form.handleSubmit(onSubmit, onInvalid)(event);
    } finally {
      // the button shows the pending state one tick later, and blocks further presses from then on
      setTimeout(() => setTimeout(() => (taken.current = false)));
    }
  };
  return (
    <FormProvider {...form}>
      <FormIdContext value={formId}>
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- only a button's press passes here */}
        <form
          noValidate
          className={cn("form", className)}
          onSubmit={(event) => void submit(event)}
          onMouseDown={keepFocus}
          {...props}
        >
          <ErrorSummary />
          {error ? (
            <Notice tone="bad" role="alert" title={errorTitle}>
              {errorMessage(error, errorFallback)}
            </Notice>
          ) : null}
          {children}
        </form>
      </FormIdContext>
    </FormProvider>
  );
}

interface FoundError {
  name: string;
  message: string;
}

function collect(errors: object, path = ""): FoundError[] {
  return Object.entries(errors).flatMap(([key, value]): FoundError[] => {
    if (typeof value !== "object" || value === null || key === "ref") return [];
    const name = path ? `${path}.${key}` : key;
    const message: unknown = "message" in value ? value.message : undefined;
    return typeof message === "string" && message ? [{ name, message }] : collect(value, name);
  });
}

/** After a refused send: one error focuses its field; more get a summary with links, which takes the focus. */
export function ErrorSummary() {
  const formId = use(FormIdContext);
  const { errors, submitCount, isSubmitting } = useFormState();
  const box = useRef<HTMLDivElement>(null);
  const found = submitCount > 0 ? collect(errors) : [];
  const names = found.map((error) => error.name).join();

  useEffect(() => {
    if (submitCount === 0 || isSubmitting || names === "") return;
    if (names.includes(",")) box.current?.focus();
    else document.getElementById(controlId(formId, names))?.focus();
    // only a new attempt moves the focus, not each corrected field
    // oxlint-disable-next-line react/exhaustive-deps
  }, [submitCount, isSubmitting]);

  if (found.length < 2) return null;
  return (
    <Notice
      ref={box}
      tone="bad"
      role="alert"
      tabIndex={-1}
      title={t("common.errorSummaryTitle", { count: found.length })}
    >
      <ul className="links grid">
        {found.map((error) => (
          <li key={error.name}>
            <a
              href={`#${controlId(formId, error.name)}`}
              onClick={(event) => {
                event.preventDefault();
                document.getElementById(controlId(formId, error.name))?.focus();
              }}
            >
              {error.message}
            </a>
          </li>
        ))}
      </ul>
    </Notice>
  );
}

/** What a control receives: spread it on Input, Textarea, PasswordInput or Select. */
export interface Control {
  id: string;
  name: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- the value's type is the schema's business
  value: any;
  // oxlint-disable-next-line typescript/no-explicit-any -- takes an event or a value
  onChange: (event: any) => void;
  onBlur: () => void;
  ref: Ref<never>;
  disabled?: boolean;
  "aria-invalid": boolean | undefined;
  "aria-describedby": string | undefined;
}

export interface FieldProps<T extends FieldValues> {
  name: FieldPath<T>;
  label: ReactNode;
  hint?: ReactNode;
  /** Marks the label '(optional)'; required fields are not marked. */
  optional?: boolean;
  className?: string;
  /** `group`: the control is several inputs (radios): the label is then a legend. */
  as?: "single" | "group";
  children: (control: Control) => ReactNode;
}

/** Label above, hint, error, then the control: wired once. `name` is a path of the form's schema. */
export function Field<T extends FieldValues = FieldValues>({
  name,
  label,
  hint,
  optional,
  className,
  as = "single",
  children,
}: FieldProps<T>) {
  const formId = use(FormIdContext);
  const { control } = useFormContext<T>();
  const { field, fieldState } = useController({ name, control });
  const id = controlId(formId, name);
  const message = fieldState.error?.message;
  const describedBy = cn(hint && `${id}-hint`, message && `${id}-error`) || undefined;
  const words = (
    <>
      {label} {optional ? <span className="opt">{t("common.optional")}</span> : null}
    </>
  );
  const body = (
    <>
      {hint ? (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      ) : null}
      {message ? (
        <span className="error" id={`${id}-error`}>
          <CircleAlert aria-hidden="true" />
          {message}
        </span>
      ) : null}
      {children({
        ...field,
        value: field.value ?? "",
        ref: field.ref as Ref<never>,
        id,
        "aria-invalid": fieldState.invalid || undefined,
        "aria-describedby": describedBy,
      })}
    </>
  );
  if (as === "group") {
    return (
      <fieldset className={cn("field", message && "bad", className)} aria-describedby={describedBy}>
        <legend className="label">{words}</legend>
        {body}
      </fieldset>
    );
  }
  return (
    <div className={cn("field", message && "bad", className)}>
      <label className="label" htmlFor={id}>
        {words}
      </label>
      {body}
    </div>
  );
}

export interface TickFieldProps<T extends FieldValues> {
  name: FieldPath<T>;
  className?: string;
  children: (
    control: Omit<Control, "value" | "onChange"> & {
      checked: boolean;
      onCheckedChange: (on: boolean | "indeterminate") => void;
    },
  ) => ReactNode;
}

/** A single checkbox with its error above: `{(control) => <TickLine {...control}>words</TickLine>}`. */
export function TickField<T extends FieldValues = FieldValues>({ name, className, children }: TickFieldProps<T>) {
  const formId = use(FormIdContext);
  const { control } = useFormContext<T>();
  const { field, fieldState } = useController({ name, control });
  const id = controlId(formId, name);
  const message = fieldState.error?.message;
  return (
    <div className={cn("field", message && "bad", className)}>
      {message ? (
        <span className="error" id={`${id}-error`}>
          <CircleAlert aria-hidden="true" />
          {message}
        </span>
      ) : null}
      {children({
        id,
        name: field.name,
        onBlur: field.onBlur,
        ref: field.ref as Ref<never>,
        disabled: field.disabled,
        checked: field.value === true,
        onCheckedChange: (on) => field.onChange(on === true),
        "aria-invalid": fieldState.invalid || undefined,
        "aria-describedby": message ? `${id}-error` : undefined,
      })}
    </div>
  );
}
