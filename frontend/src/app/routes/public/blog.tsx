import { Link } from "react-router-dom";
import { PublicPage } from "@/components/pages";
import { Tag } from "@/components/ui/badge";
import { NewsletterForm } from "@/features/newsletter/newsletter-form";
import { cn } from "@/lib/cn";
import { formatDate } from "@/lib/format";
import { t } from "@/messages";
import { posts, type Post } from "@/messages/en/content/blog";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import { PostPicture } from "./blog-cover";
import { EnglishText } from "./english-text";
import "./marketing.css";

function Teaser({ post, lead }: { post: Post; lead?: boolean }) {
  return (
    <article className={lead ? "lead-post" : undefined} lang="en">
      <Link className={cn("cover", !lead && "small")} to={paths.blogPost(post.id)} tabIndex={-1} aria-hidden="true">
        <PostPicture image={post.image} />
      </Link>
      <div>
        <p className="by">
          <Tag>{post.category}</Tag>
          <time dateTime={post.date}>{formatDate(post.date)}</time>
        </p>
        <h2 className={lead ? "serif" : undefined}>
          <Link to={paths.blogPost(post.id)}>{post.title}</Link>
        </h2>
        <p className="soft">{post.excerpt}</p>
      </div>
    </article>
  );
}

export function Component() {
  const [first, ...others] = posts;
  return (
    <PublicPage title={t("marketing.blogTitle")} className="marketing wrap blog">
      <h1 className="serif">{t("marketing.blogHeadline")}</h1>
      <EnglishText />
      {first ? <Teaser post={first} lead /> : null}
      <div className="posts">
        {others.map((post) => (
          <Teaser key={post.id} post={post} />
        ))}
      </div>
      <NewsletterForm />
    </PublicPage>
  );
}
