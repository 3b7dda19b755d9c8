import { Picture, type PictureProps } from "./picture";

export function HandsArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <circle className="w" cx="24" cy="13" r="7.5" />
      <path className="s" d="M4 26c5-1 8 1 11 4l9 3 9-3c3-3 6-5 11-4v8c-5 0-8 2-11 5l-9 4-9-4c-3-3-6-5-11-5z" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
        d="M3 25v11M45 25v11M3 26c5-1 9 .5 12 3.5l6 .8a2.8 2.8 0 0 1 0 5.5l-6.5-.3M3 35c5 0 8 1.5 11 4.5 3 2.3 6.5 3.3 10 3.3s7-1 10-3.3c3-3 6-4.5 11-4.5M45 26c-5-1-9 .5-12 3.5l-6 .8a2.8 2.8 0 0 0-1 .3"
      />
      <path className="k" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round" d="M24 9.5v7M20.5 13h7" />
    </Picture>
  );
}
