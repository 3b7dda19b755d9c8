import { Picture, type PictureProps } from "./picture";

export function HouseArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <path className="s" d="M9 22 24 9l15 13v20H9z" />
      <path className="w" d="M20 42V31a4 4 0 0 1 8 0v11z" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinejoin="round"
        strokeLinecap="round"
        d="M5 25 24 8l19 17M10 21v21h28V21M20 42V31a4 4 0 0 1 8 0v11M33 12V7h4v8.5"
      />
    </Picture>
  );
}
