import { Link, useParams } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { BackLink, PublicPage } from "@/components/pages";
import { State } from "@/components/state";
import { Tag } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { formatDate } from "@/lib/format";
import { t } from "@/messages";
import { posts } from "@/messages/en/content/blog";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import { PostPicture } from "./blog-cover";
import { EnglishText } from "./english-text";
import "./marketing.css";

export function Component() {
  const { id } = useParams();
  const post = posts.find((candidate) => candidate.id === id);
  if (!post) {
    return (
      <PublicPage title={t("marketing.postMissing")} className="lone">
        <State
          art={GapArt}
          heading="h1"
          title={t("marketing.postMissing")}
          actions={
            <Button asChild variant="primary">
              <Link to={paths.blog}>{t("marketing.blogAll")}</Link>
            </Button>
          }
        >
          {t("marketing.postMissingBody")}
        </State>
      </PublicPage>
    );
  }
  return (
    <PublicPage title={post.title} className="marketing wrap blog">
      <BackLink to={paths.blog}>{t("marketing.blogAll")}</BackLink>
      <EnglishText />
      <article className="mt-4" lang="en">
        <p className="by">
          <Tag>{post.category}</Tag>
          <time dateTime={post.date}>{formatDate(post.date)}</time>
        </p>
        <h1 className="serif mt-3 max-w-[16em] text-3xl!">{post.title}</h1>
        <p className="lead mt-4">{post.excerpt}</p>
        <div className="cover my-8 aspect-[21/9]! max-w-(--width-prose) [&_.art]:h-3/4! [&_.art]:w-auto!">
          <PostPicture image={post.image} />
        </div>
        <div className="prose">
          {post.body.map((part) => {
            if (typeof part === "string") return <p key={part}>{part}</p>;
            if ("heading" in part) return <h2 key={part.heading}>{part.heading}</h2>;
            return <blockquote key={part.quote}>{part.quote}</blockquote>;
          })}
        </div>
      </article>
      <nav aria-label={t("marketing.blogMore")} className="mt-12 border-t border-line pt-6">
        <h2 className="text-xl!">{t("marketing.blogMore")}</h2>
        <ul className="mt-3 grid gap-2">
          {posts
            .filter((other) => other.id !== post.id)
            .map((other) => (
              <li key={other.id}>
                <Link className="inline-flex min-h-11 items-center" to={paths.blogPost(other.id)}>
                  {other.title}
                </Link>
              </li>
            ))}
        </ul>
      </nav>
    </PublicPage>
  );
}
