import { useQuery } from "@tanstack/react-query";
import { Users } from "lucide-react";
import { Link } from "react-router-dom";
import { DataTable, type Column } from "@/components/data-table";
import { DashboardPage, SectionHead } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { EmptyState, FiguresSkeleton, ListSkeleton, TabsSkeleton } from "@/components/states";
import { Tag } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { IncomingTable } from "@/features/incoming-requests/components/incoming-table";
import { nonprofitDashboardQuery, type NonprofitDashboard } from "@/features/nonprofit-dashboard/api";
import { MemberBadge } from "@/features/team/components/member-badge";
import { firstName } from "@/lib/format";
import { can, useSession, useUser, type Organization } from "@/lib/session";
import { toast } from "@/lib/toast";
import { useTab } from "@/lib/url-state";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/helpCategories";
import "@/messages/en/incoming";
import "@/messages/en/nonprofitDashboard";
import "@/messages/en/organization";
import "@/messages/en/team";
import { paths } from "../../../paths";
import { BudgetSummary, Overview } from "./overview";

const tabs = ["overview", "requests", "team", "budget", "categories"] as const;
const tabWords = {
  overview: "nonprofitDashboard.tabOverview",
  requests: "nonprofitDashboard.tabRequests",
  team: "nonprofitDashboard.tabTeam",
  budget: "nonprofitDashboard.tabBudget",
  categories: "nonprofitDashboard.tabCategories",
} as const;

type TeamMember = NonNullable<NonprofitDashboard["team"]>[number];

const teamColumns = (): Column<TeamMember>[] => [
  {
    key: "name",
    header: t("team.columnName"),
    cell: (member) => (
      <span className="typed">
        <strong className="block">{member.full_name || member.email}</strong>
        {member.full_name ? <span className="text-sm text-soft">{member.email}</span> : null}
      </span>
    ),
  },
  {
    key: "role",
    header: t("team.columnRole"),
    card: "wide",
    cell: (member) => t(`team.role.${member.role}`),
  },
  { key: "status", header: t("team.columnStatus"), card: "top", cell: (member) => <MemberBadge member={member} /> },
];

function TeamTab({ team }: { team: NonNullable<NonprofitDashboard["team"]> }) {
  return (
    <>
      <SectionHead title={t("nonprofitDashboard.tabTeam")}>
        <Button asChild variant="quiet">
          <Link to={paths.nonprofitTeam}>{t("nonprofitDashboard.manageTeam")}</Link>
        </Button>
      </SectionHead>
      <DataTable
        rows={team}
        columns={teamColumns()}
        rowKey={(member) => member.id}
        caption={t("nonprofitDashboard.teamCaption")}
      />
    </>
  );
}

function CategoriesTab({ categories }: Pick<NonprofitDashboard, "categories">) {
  return (
    <>
      <SectionHead title={t("nonprofitDashboard.tabCategories")}>
        <Button asChild variant="quiet">
          <Link to={paths.categoriesManagement}>{t("nonprofitDashboard.manageCategories")}</Link>
        </Button>
      </SectionHead>
      {categories.length === 0 ? (
        <EmptyState heading="h3" title={t("helpCategories.empty")}>
          {t("helpCategories.emptyBody")}
        </EmptyState>
      ) : (
        <ul className="list ruled">
          {categories.map((category) => (
            <li key={category.id} className="item">
              <h3 className="text-base!">{localName(category.name)}</h3>
              {category.is_active ? <Tag>{t("helpCategories.active")}</Tag> : null}
              <p className="meta num">
                {category.requests > 0
                  ? t("helpCategories.requests", { count: category.requests })
                  : t("helpCategories.noRequests")}
              </p>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Tabbed({ data, organization }: { data: NonprofitDashboard; organization: Organization }) {
  const session = useSession();
  const [wanted, setTab] = useTab(tabs);
  const managed = can(session, "view_budget");
  const acts = can(session, "act_on_requests");
  // the same number as in the menu
  const waiting = acts ? data.counts?.due : data.counts?.pending;
  const shown = tabs.filter((tab) => (tab === "overview" ? true : tab === "requests" ? data.counts !== null : managed));
  const tab = shown.find((known) => known === wanted) ?? "overview";
  return (
    <Tabs value={tab} onValueChange={setTab}>
      <TabsList aria-label={t("nonprofitDashboard.tabsLabel")}>
        {shown.map((known) => (
          <Tab
            key={known}
            value={known}
            count={known === "requests" ? waiting : undefined}
            hot={known === "requests" && acts && (waiting ?? 0) > 0}
          >
            {t(tabWords[known])}
          </Tab>
        ))}
      </TabsList>
      <TabPanel value="overview">
        <Overview data={data} managed={managed} />
      </TabPanel>
      <TabPanel value="requests">
        {data.requests.length === 0 ? (
          <EmptyState title={t("incoming.emptyTitle")}>{t("incoming.emptyFirst")}</EmptyState>
        ) : (
          <div className="grid gap-4">
            <IncomingTable
              rows={data.requests}
              caption={t("nonprofitDashboard.tableCaption")}
              href={paths.nonprofitRequest}
              mayDecide={acts}
              withAmount={false}
            />
            <Button asChild className="justify-self-start">
              <Link to={paths.nonprofitRequests}>{t("nonprofitDashboard.viewAll")}</Link>
            </Button>
          </div>
        )}
      </TabPanel>
      {managed ? (
        <>
          <TabPanel value="team">
            <TeamTab team={data.team ?? []} />
          </TabPanel>
          <TabPanel value="budget">
            <SectionHead title={t("nonprofitDashboard.budgetSummary")}>
              <Button asChild variant="quiet">
                <Link to={paths.nonprofitBudget}>{t("nonprofitDashboard.openBudget")}</Link>
              </Button>
            </SectionHead>
            <div className="max-w-xl">
              <BudgetSummary budget={data.budget} />
            </div>
          </TabPanel>
          <TabPanel value="categories">
            <CategoriesTab categories={data.categories} />
          </TabPanel>
        </>
      ) : null}
      {organization.role === "volunteer" ? (
        <p className="mt-6 text-soft">{t("nonprofitDashboard.volunteerNote")}</p>
      ) : null}
    </Tabs>
  );
}

function WithOrganization({ organization }: { organization: Organization }) {
  const query = useQuery(nonprofitDashboardQuery(organization.id));
  return (
    <QueryView
      query={query}
      failedTitle={t("nonprofitDashboard.failed")}
      loading={
        <>
          <TabsSkeleton />
          <FiguresSkeleton />
          <ListSkeleton rows={3} />
        </>
      }
    >
      {(data) => (
        <>
          {data.organization.status === "awaiting_approval" ? (
            <Notice tone="info" title={t("organization.awaitingTitle")}>
              {t("organization.awaitingBody")}
            </Notice>
          ) : null}
          <Tabbed data={data} organization={organization} />
        </>
      )}
    </QueryView>
  );
}

/** No organization yet: a founder sets it up, others wait for an invitation. */
function WithoutOrganization({ founder }: { founder: boolean }) {
  return (
    <EmptyState
      title={t(founder ? "nonprofitDashboard.onboardingTitle" : "organization.noOrganizationTitle")}
      actions={
        <Button asChild variant="primary">
          <Link to={paths.nonprofitOnboarding}>{t("nonprofitDashboard.onboardingAction")}</Link>
        </Button>
      }
    >
      {t(founder ? "nonprofitDashboard.onboardingBody" : "organization.noOrganizationBody")}
    </EmptyState>
  );
}

export function Component() {
  const session = useSession();
  const user = useUser();
  const { organization } = session;
  const name = firstName(user.fullName);
  return (
    <DashboardPage
      title={t("nonprofitDashboard.title")}
      heading={name ? t("nonprofitDashboard.welcome", { name }) : t("nonprofitDashboard.welcomePlain")}
      lead={
        organization
          ? t("nonprofitDashboard.roleAt", {
              role: t(`team.role.${organization.role}`),
              organization: organization.name,
            })
          : t("nonprofitDashboard.noOrganization")
      }
      action={
        !organization && user.nonprofitRole === "admin" ? (
          <Button
            onClick={() =>
              toast({
                variant: "destructive",
                title: t("organization.required"),
                description: t("organization.requiredBody"),
              })
            }
          >
            <Users aria-hidden="true" />
            {t("nonprofitDashboard.teamManagement")}
          </Button>
        ) : can(session, "view_team") ? (
          <Button asChild className="wide-only">
            <Link to={can(session, "manage_team") ? paths.teamManagement : paths.nonprofitTeam}>
              <Users aria-hidden="true" />
              {t("nonprofitDashboard.teamManagement")}
            </Link>
          </Button>
        ) : null
      }
    >
      {organization ? (
        <WithOrganization key={organization.id} organization={organization} />
      ) : (
        <WithoutOrganization founder={user.nonprofitRole === "admin"} />
      )}
    </DashboardPage>
  );
}
