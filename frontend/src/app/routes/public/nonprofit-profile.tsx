import { useQuery } from "@tanstack/react-query";
import { Clock, Globe, Mail, MapPin, MapPinned, Phone, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { Link, useParams } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { HandsArt } from "@/components/art/hands";
import { PublicPage } from "@/components/pages";
import { FailedState, LoadingView, State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { nonprofitProfileQuery, type NonprofitProfile } from "@/features/directory/api";
import { errorMessage, isNotFound } from "@/lib/errors";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/account";
import "@/messages/en/errors";
import { paths } from "../../paths";

function Fact({ Icon, label, children }: { Icon: LucideIcon; label: string; children: ReactNode }) {
  return (
    <div className="border-b border-line py-3 ps-8">
      <dt className="text-sm text-soft">
        <Icon aria-hidden="true" className="absolute mt-1 -ms-8 text-faint" />
        {label}
      </dt>
      <dd className="break-words">{children}</dd>
    </div>
  );
}

/** Only web addresses become links; anything else stays text. */
function Website({ address }: { address: string }) {
  const href = /^https?:\/\//i.test(address) ? address : `https://${address}`;
  if (!URL.canParse(href)) return address;
  return (
    <a className="contact" href={href} rel="noopener noreferrer nofollow">
      {address.replace(/^https?:\/\//i, "")}
    </a>
  );
}

function SelectButton({ nonprofit }: { nonprofit: NonprofitProfile }) {
  const { user, selectedNonprofit, selectNonprofit } = useSession();
  if (user?.role !== "requester") return null;
  if (selectedNonprofit?.id === nonprofit.id) return <p className="small soft">{t("account.selectedThem")}</p>;
  return (
    <Button
      size="big"
      onClick={() => {
        selectNonprofit({ id: nonprofit.id, name: nonprofit.name }).then(
          () =>
            toast({
              title: t("account.nonprofitSelected"),
              description: t("account.nonprofitSelectedBody", { name: nonprofit.name }),
            }),
          (error: unknown) =>
            toast({ variant: "destructive", title: t("errors.title"), description: errorMessage(error) }),
        );
      }}
    >
      {t("account.selectThem")}
    </Button>
  );
}

function Profile({ nonprofit }: { nonprofit: NonprofitProfile }) {
  return (
    <PublicPage title={nonprofit.name} className="wrap py-10">
      <div className="two wide">
        <div className="grid min-w-0 gap-8">
          <header className="flex flex-wrap items-center gap-5">
            {nonprofit.logoUrl ? (
              <img
                src={nonprofit.logoUrl}
                alt={t("account.logoOf", { name: nonprofit.name })}
                className="size-20 rounded-lg object-cover shadow-sheet"
              />
            ) : (
              <HandsArt className="size-16" />
            )}
            <div className="min-w-0">
              <h1 className="serif text-3xl leading-tight">{nonprofit.name}</h1>
              {nonprofit.category ? <p className="soft mt-1">{localName(nonprofit.category)}</p> : null}
            </div>
          </header>
          {nonprofit.mission ? (
            <section>
              <h2 className="text-xl">{t("account.mission")}</h2>
              <p className="mt-2 max-w-(--width-prose) font-serif text-lg leading-relaxed">{nonprofit.mission}</p>
            </section>
          ) : null}
          {nonprofit.description ? <p className="max-w-(--width-prose)">{nonprofit.description}</p> : null}
          <section>
            <h2 className="text-xl">{t("account.helpsWith")}</h2>
            {nonprofit.categories.length === 0 ? (
              <p className="soft mt-2">{t("account.noCategories")}</p>
            ) : (
              <ul className="list ruled mt-3">
                {nonprofit.categories.map((category) => (
                  <li key={category.id} className="py-3">
                    <strong>{localName(category.name)}</strong>
                    {category.description ? <p className="text-ui text-soft">{category.description}</p> : null}
                  </li>
                ))}
              </ul>
            )}
          </section>
          <div className="actions">
            <Button asChild variant="primary" size="big">
              <Link to={paths.requestSubmission}>{t("account.askThem")}</Link>
            </Button>
            <SelectButton nonprofit={nonprofit} />
          </div>
        </div>
        <aside>
          <h2 className="text-xl">{t("account.contact")}</h2>
          <dl className="mt-3 border-t border-line">
            {nonprofit.average_response_time_days ? (
              <Fact Icon={Clock} label={t("account.responseTime")}>
                {t("account.days", { count: nonprofit.average_response_time_days })}
              </Fact>
            ) : null}
            {nonprofit.location ? (
              <Fact Icon={MapPin} label={t("account.location")}>
                {nonprofit.location}
              </Fact>
            ) : null}
            {nonprofit.service_area.length > 0 ? (
              <Fact Icon={MapPinned} label={t("account.whereTheyHelp")}>
                {nonprofit.service_area.join(" · ")}
              </Fact>
            ) : null}
            {nonprofit.email ? (
              <Fact Icon={Mail} label={t("account.email")}>
                <a className="contact" href={`mailto:${nonprofit.email}`}>
                  {nonprofit.email}
                </a>
              </Fact>
            ) : null}
            {nonprofit.phone ? (
              <Fact Icon={Phone} label={t("account.phone")}>
                <a className="contact" href={`tel:${nonprofit.phone.replace(/[^+\d]/g, "")}`}>
                  {nonprofit.phone}
                </a>
              </Fact>
            ) : null}
            {nonprofit.website ? (
              <Fact Icon={Globe} label={t("account.website")}>
                <Website address={nonprofit.website} />
              </Fact>
            ) : null}
          </dl>
        </aside>
      </div>
    </PublicPage>
  );
}

export function Component() {
  const { id = "" } = useParams();
  const query = useQuery(nonprofitProfileQuery(id));
  if (query.isPending) return <LoadingView />;
  if (query.data) return <Profile nonprofit={query.data} />;
  return (
    <PublicPage title={t("account.nonprofitProfile")} className="lone">
      {isNotFound(query.error) ? (
        <State
          art={GapArt}
          heading="h1"
          title={t("account.nonprofitMissing")}
          actions={
            <Button asChild variant="primary">
              <Link to={paths.home}>{t("common.returnHome")}</Link>
            </Button>
          }
        >
          {t("account.nonprofitMissingBody")}
        </State>
      ) : (
        <FailedState
          heading="h1"
          title={t("account.nonprofitNotLoaded")}
          error={query.error}
          onRetry={() => void query.refetch()}
        />
      )}
    </PublicPage>
  );
}
