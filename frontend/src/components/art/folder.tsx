import { Picture, type PictureProps } from "./picture";

export function FolderArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <path className="p l" strokeWidth="2" strokeLinejoin="round" d="M13 24V8h17l6 6v10z" />
      <path className="l" strokeWidth="2" strokeLinecap="round" d="M18 13.5h8" />
      <path
        className="s"
        d="M5 19.5A2.5 2.5 0 0 1 7.5 17H18l3 4h19.5a2.5 2.5 0 0 1 2.5 2.5V38a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3z"
      />
      <path
        className="l"
        strokeWidth="2"
        strokeLinejoin="round"
        d="M5 19.5A2.5 2.5 0 0 1 7.5 17H18l3 4h19.5a2.5 2.5 0 0 1 2.5 2.5V38a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3z"
      />
      <circle className="w" cx="36" cy="31" r="4" />
    </Picture>
  );
}
