import { Picture, type PictureProps } from "./picture";

export function GlobeArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <circle className="s" cx="24" cy="24" r="18" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinecap="round"
        d="M24 6a18 18 0 1 0 0 36 18 18 0 0 0 0-36zM6 24h36M24 6c6 5 8 11 8 18s-2 13-8 18c-6-5-8-11-8-18s2-13 8-18z"
      />
      <circle className="w" cx="13" cy="18" r="4" />
      <circle className="w" cx="35" cy="31" r="4" />
    </Picture>
  );
}
