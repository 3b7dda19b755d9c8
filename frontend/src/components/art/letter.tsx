import { Picture, type PictureProps } from "./picture";

export function LetterArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <path className="s" d="M5 14h38v25H5z" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinejoin="round"
        strokeLinecap="round"
        d="M7.5 13h33A2.5 2.5 0 0 1 43 15.5v22a2.5 2.5 0 0 1-2.5 2.5h-33A2.5 2.5 0 0 1 5 37.5v-22A2.5 2.5 0 0 1 7.5 13zM6 15l18 14 18-14"
      />
      <circle className="w" cx="38" cy="12" r="7" />
      <path className="k" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round" d="M35 12.2l2.2 2.2 4-4.4" />
    </Picture>
  );
}
