/** Page layouts. A route renders exactly one of these; each sets the browser's title and contains the `h1`. */
import { ArrowLeft } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { cn } from "@/lib/cn";
import { usePageTitle } from "@/lib/page-title";
import { t } from "@/messages";

interface PageProps {
  title: string;
  children: ReactNode;
  className?: string;
}

/** A public page: its sections bring their own headings, the first one the `h1`. */
export function PublicPage({ title, children, className }: PageProps) {
  usePageTitle(title);
  return (
    <main id="main" tabIndex={-1} className={cn("outline-none", className)}>
      {children}
    </main>
  );
}

/** A link back to the previous page. */
export function BackLink({ to, children }: { to: string; children?: ReactNode }) {
  return (
    <Link className="back" to={to}>
      <ArrowLeft aria-hidden="true" />
      {children ?? t("common.back")}
    </Link>
  );
}

export interface FormPageProps extends PageProps {
  /** One line under the title. */
  lead?: ReactNode;
  back?: ReactNode;
  /** Between back link and title: the wizard's progress. */
  progress?: ReactNode;
  /** Beside the title; above it where there is no room. */
  aside?: ReactNode;
  /** The heading, when it differs from the browser's title; "" when the content brings its own `h1`. */
  heading?: ReactNode;
}

/** A form page: 38 rem, left-aligned. Back, (progress,) title, one line, fields. */
export function FormPage({ title, heading, lead, back, progress, aside, children, className }: FormPageProps) {
  usePageTitle(title);
  const name = heading === "" ? null : <h1 className={aside ? undefined : "mt-2"}>{heading ?? title}</h1>;
  return (
    <main id="main" tabIndex={-1} className={cn("form-page outline-none", className)}>
      {back}
      {progress}
      {aside ? (
        <div className="title-row">
          {name}
          {aside}
        </div>
      ) : (
        name
      )}
      {lead ? <p className="mt-2 text-soft">{lead}</p> : null}
      <div className="mt-6">{children}</div>
    </main>
  );
}

export interface DashboardPageProps extends PageProps {
  /** The heading, when it differs from the browser's title; "" when the content brings its own `h1`. */
  heading?: ReactNode;
  back?: ReactNode;
  /** One sentence in words. */
  lead?: ReactNode;
  /** The page's button, on the right; add `wide-only` if the tab bar has it on phones. */
  action?: ReactNode;
}

/** A working page inside the shell: title and one sentence, the main action, figures, lists. */
export function DashboardPage({ title, heading, lead, back, action, children, className }: DashboardPageProps) {
  usePageTitle(title);
  return (
    <main id="main" tabIndex={-1} className={cn("work outline-none", className)}>
      {heading === "" ? null : (
        <div>
          {back}
          <div className={cn("page-head", back ? "mt-1" : undefined)}>
            <div>
              <h1>{heading ?? title}</h1>
              {lead ? <p>{lead}</p> : null}
            </div>
            {action}
          </div>
        </div>
      )}
      {children}
    </main>
  );
}

export interface DetailPageProps extends PageProps {
  /** Its name in the breadcrumb: the number. */
  crumb?: string;
  back?: ReactNode;
  heading?: ReactNode;
  /** Number, dates: one line under the title. */
  meta?: ReactNode;
  badge?: ReactNode;
  /** The right rail: decision, timeline. Below the content on phones. */
  rail?: ReactNode;
  /** Phones: the primary action and 'Other answers' above the thumb. */
  dock?: ReactNode;
}

/** One object: back, title, number, badge; content and a rail. Prints to one sheet. */
export function DetailPage({
  title,
  crumb,
  heading,
  back,
  meta,
  badge,
  rail,
  dock,
  children,
  className,
}: DetailPageProps) {
  usePageTitle(title, crumb);
  return (
    <>
      <main id="main" tabIndex={-1} className={cn("work outline-none", className)}>
        <div>
          {back}
          <div className="page-head mt-1">
            <div>
              <h1>{heading ?? title}</h1>
              {meta ? <p className="num">{meta}</p> : null}
            </div>
            {badge}
          </div>
        </div>
        {rail ? (
          <div className="two wide">
            <div className="grid min-w-0 gap-8">{children}</div>
            <aside className="grid gap-8">{rail}</aside>
          </div>
        ) : (
          children
        )}
      </main>
      {dock ? <div className="dock">{dock}</div> : null}
    </>
  );
}

/** A section's head inside a working page: `h2` and an optional link on the right. */
export function SectionHead({ title, id, children }: { title: ReactNode; id?: string; children?: ReactNode }) {
  return (
    <div className="section-head">
      <h2 id={id}>{title}</h2>
      {children}
    </div>
  );
}
