import { ArrowRight, BookOpen, Lightbulb, Video, type LucideIcon } from "lucide-react";
import { Link } from "react-router-dom";
import { PublicPage } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { Words } from "@/components/words";
import { useAppConfig } from "@/lib/env";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import "./marketing.css";

interface Shelf {
  title: string;
  Icon: LucideIcon;
  items: readonly string[];
}

/** Announced, not written yet: the buttons say so and do nothing. */
function ComingShelf({ title, Icon, items }: Shelf) {
  return (
    <section className="group">
      <header>
        <h2 className="serif flex items-center gap-3">
          <Icon aria-hidden="true" className="size-7 text-faint" />
          {title}
        </h2>
      </header>
      <ul className="border-t border-line">
        {items.map((item) => (
          <li key={item} className="flex flex-wrap items-center justify-between gap-3 border-b border-line py-3">
            <span className="font-semibold">{item}</span>
            <Button aria-disabled="true" aria-label={`${item}: ${t("marketing.comingSoon")}`}>
              {t("marketing.comingSoon")}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Component() {
  const email = useAppConfig()?.supportEmail;
  const featured = [
    [paths.blogPost("1"), t("marketing.featured1"), t("marketing.featured1Body")],
    [paths.faq, t("marketing.featured2"), t("marketing.featured2Body")],
    [paths.blogPost("2"), t("marketing.featured3"), t("marketing.featured3Body")],
  ] as const;
  const shelves: Shelf[] = [
    {
      title: t("marketing.resourcesGuides"),
      Icon: BookOpen,
      items: [t("marketing.guide1"), t("marketing.guide2"), t("marketing.guide3")],
    },
    {
      title: t("marketing.resourcesVideos"),
      Icon: Video,
      items: [t("marketing.video1"), t("marketing.video2"), t("marketing.video3")],
    },
    {
      title: t("marketing.resourcesPractices"),
      Icon: Lightbulb,
      items: [t("marketing.practice1"), t("marketing.practice2"), t("marketing.practice3")],
    },
  ];
  return (
    <PublicPage title={t("marketing.resourcesTitle")} className="marketing">
      <section className="wrap intro">
        <p className="kicker mb-2">{t("marketing.resourcesTitle")}</p>
        <h1 className="serif">{t("marketing.resourcesHeadline")}</h1>
        <p className="lead">{t("marketing.resourcesLead")}</p>
      </section>
      <section className="section alt py-12!">
        <div className="wrap">
          <h2>{t("marketing.resourcesFeatured")}</h2>
          <div className="more2 mt-6! lg:grid-cols-3!">
            {featured.map(([to, title, body]) => (
              <Link key={to} to={to} className="bg-raised! shadow-sheet">
                <strong>{title}</strong>
                <span>{body}</span>
                <ArrowRight aria-hidden="true" />
              </Link>
            ))}
          </div>
        </div>
      </section>
      <div className="wrap pt-12">
        {shelves.map((shelf) => (
          <ComingShelf key={shelf.title} {...shelf} />
        ))}
      </div>
      <section className="wrap pb-(--space-section)">
        <h2 className="text-xl">{t("marketing.resourcesContact")}</h2>
        <p className="soft mt-2">
          {email ? (
            <Words k="marketing.resourcesContactBody" parts={{ email: <a href={`mailto:${email}`}>{email}</a> }} />
          ) : (
            t("marketing.resourcesContactBodyPlain")
          )}
        </p>
      </section>
    </PublicPage>
  );
}
