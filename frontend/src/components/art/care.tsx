import { Picture, type PictureProps } from "./picture";

export function CareArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <rect className="s" x="6" y="15" width="36" height="26" rx="4" />
      <circle className="w" cx="24" cy="28" r="8.5" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
        d="M10 15h28a4 4 0 0 1 4 4v18a4 4 0 0 1-4 4H10a4 4 0 0 1-4-4V19a4 4 0 0 1 4-4zM17 15v-4a3 3 0 0 1 3-3h8a3 3 0 0 1 3 3v4"
      />
      <path className="k" strokeWidth="2" strokeLinecap="round" d="M24 23.5v9M19.5 28h9" />
    </Picture>
  );
}
