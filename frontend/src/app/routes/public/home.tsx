import { ArrowRight } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { BasketArt } from "@/components/art/basket";
import { CareArt } from "@/components/art/care";
import { HorizonArt } from "@/components/art/horizon";
import { HouseArt } from "@/components/art/house";
import { SchoolArt } from "@/components/art/school";
import { ShopArt } from "@/components/art/shop";
import { PublicPage } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { Words } from "@/components/words";
import { formatNumber } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/home";
import { paths } from "../../paths";
import "./home.css";

/** The static mock of the hero (sections 2 and 9): not read from anywhere. */
const MOCK = { total: 247, approved: 189, pending: 58 };
const DOTS_PER_ROW = 19;

function LiveFigures() {
  const rows = Math.ceil(MOCK.total / DOTS_PER_ROW);
  return (
    <section className="panel live" aria-labelledby="live-title">
      <div className="live-head">
        <h2 id="live-title" className="font-sans! text-ui! leading-normal! font-semibold! tracking-normal!">
          {t("home.dashboard")}
        </h2>
        <span className="pulse">{t("home.live")}</span>
      </div>
      <p className="total">
        <b>{formatNumber(MOCK.total)}</b>
        <span className="soft">{t("home.totalRequests")}</span>
      </p>
      <svg
        className="dots"
        viewBox={`0 0 ${DOTS_PER_ROW * 17} ${rows * 17}`}
        role="img"
        aria-label={t("home.dots", MOCK)}
      >
        {Array.from({ length: MOCK.total }, (_, dot) => (
          <circle
            key={dot}
            className={dot < MOCK.approved ? "a" : "n"}
            cx={9 + (dot % DOTS_PER_ROW) * 17}
            cy={9 + Math.floor(dot / DOTS_PER_ROW) * 17}
            r={dot < MOCK.approved ? 5.5 : 4.5}
          />
        ))}
      </svg>
      <dl className="key">
        <div>
          <dt>
            <span className="swatch" />
            {t("home.approved")}
          </dt>
          <dd>{formatNumber(MOCK.approved)}</dd>
        </div>
        <div>
          <dt>
            <span className="swatch n" />
            {t("home.pending")}
          </dt>
          <dd>{formatNumber(MOCK.pending)}</dd>
        </div>
      </dl>
    </section>
  );
}

function Hero() {
  return (
    <section className="hero">
      <div className="hero-text">
        <h1>
          <span>{t("home.headline1")}</span> <span>{t("home.headline2")}</span>
        </h1>
        <p className="lead">{t("home.lead")}</p>
        <div className="actions">
          <Button asChild variant="primary" size="big">
            <Link to={paths.requestSubmission}>{t("home.submitAidRequest")}</Link>
          </Button>
          <Button asChild size="big">
            <Link to={paths.nonprofitSignup}>{t("home.forNonprofits")}</Link>
          </Button>
        </div>
        <p className="hero-note">
          <Words
            k="home.after"
            parts={{ status: <Link to={paths.requestStatusLookup}>{t("home.checkStatus")}</Link> }}
          />
        </p>
      </div>
      <div className="horizon">
        <HorizonArt role="img" aria-hidden={undefined} aria-label={t("home.horizon")} />
      </div>
      <LiveFigures />
    </section>
  );
}

function Audiences() {
  const kinds = [
    [BasketArt, t("home.kindFood")],
    [HouseArt, t("home.kindRent")],
    [CareArt, t("home.kindMedical")],
    [SchoolArt, t("home.kindSchool")],
    [ShopArt, t("home.kindBusiness")],
  ] as const;
  return (
    <section className="section">
      <div className="wrap audiences">
        <div className="seekers">
          <h2>{t("home.aidSeekers")}</h2>
          <p className="lead">{t("home.aidSeekersBody")}</p>
          <ul className="kinds">
            {kinds.map(([Art, name]) => (
              <li key={name}>
                <Link to={paths.requestSubmission}>
                  <Art />
                  <span>{name}</span>
                  <ArrowRight aria-hidden="true" />
                </Link>
              </li>
            ))}
          </ul>
        </div>
        <div className="others">
          <article>
            <h2 className="text-2xl!">{t("home.nonprofits")}</h2>
            <p>{t("home.nonprofitsBody")}</p>
            <Link className="more" to={paths.forNonprofits}>
              {t("home.nonprofitsLink")} <ArrowRight aria-hidden="true" />
            </Link>
          </article>
          <article>
            <h2 className="text-2xl!">{t("home.globalImpact")}</h2>
            <p>{t("home.globalImpactBody")}</p>
            <Link className="more" to={paths.aboutUs}>
              {t("home.globalImpactLink")} <ArrowRight aria-hidden="true" />
            </Link>
          </article>
        </div>
      </div>
    </section>
  );
}

function Crossing() {
  const steps = [
    [t("home.step1When"), t("home.step1"), t("home.step1Body")],
    [t("home.step2When"), t("home.step2"), t("home.step2Body")],
    [t("home.step3When"), t("home.step3"), t("home.step3Body")],
  ] as const;
  return (
    <section className="section alt">
      <div className="wrap">
        <h2>{t("home.afterTitle")}</h2>
        <ol className="crossing">
          {steps.map(([when, title, body]) => (
            <li key={title}>
              <span className="when">{when}</span>
              <h3>{title}</h3>
              <p>{body}</p>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}

function Story({ words, name, about, big }: { words: ReactNode; name: string; about: string; big?: boolean }) {
  return (
    <figure className={big ? "story big" : "story"}>
      <blockquote>{words}</blockquote>
      <figcaption>
        <strong>{name}</strong> {about}
      </figcaption>
    </figure>
  );
}

function Stories() {
  return (
    <section className="section" aria-labelledby="stories">
      <div className="wrap stories">
        <h2 id="stories" className="visually-hidden">
          {t("home.storiesTitle")}
        </h2>
        <Story big words={t("home.story1")} name={t("home.story1Name")} about={t("home.story1About")} />
        <div className="story-pair">
          <Story words={t("home.story2")} name={t("home.story2Name")} about={t("home.story2About")} />
          <Story words={t("home.story3")} name={t("home.story3Name")} about={t("home.story3About")} />
        </div>
      </div>
    </section>
  );
}

export function Component() {
  return (
    <PublicPage title={t("home.title")} className="home-page">
      <Hero />
      <Audiences />
      <Crossing />
      <Stories />
      <section className="band cta">
        <div className="wrap">
          <div>
            <h2>{t("home.ctaTitle")}</h2>
            <p>{t("home.ctaBody")}</p>
          </div>
          <div className="actions">
            <Button asChild variant="onBand" size="big">
              <Link to={paths.requestSubmission}>{t("home.submitRequest")}</Link>
            </Button>
            <Button asChild variant="onBandPlain" size="big">
              <Link to={paths.nonprofitSignup}>{t("home.nonprofitSignup")}</Link>
            </Button>
          </div>
        </div>
      </section>
    </PublicPage>
  );
}
