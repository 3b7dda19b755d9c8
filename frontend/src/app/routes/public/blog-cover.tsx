import { FolderArt } from "@/components/art/folder";
import { GlobeArt } from "@/components/art/globe";
import { SentArt } from "@/components/art/sent";
import type { Post } from "@/messages/en/content/blog";

const pictures = { sent: SentArt, folder: FolderArt, globe: GlobeArt } as const;

export function PostPicture({ image }: { image: Post["image"] }) {
  const Art = pictures[image];
  return <Art />;
}
