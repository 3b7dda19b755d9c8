import { Picture, type PictureProps } from "./picture";

export function ShopArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <path className="s" d="M9 22h30v20H9z" />
      <path className="p" d="M22 42V30h11v12z" />
      <path className="w" d="M5 20 9 8h7.5v12a5.7 5.7 0 0 1-11.5 0zM24 8h7.5l0 12a3.8 3.8 0 0 1-7.5 0z" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinejoin="round"
        strokeLinecap="round"
        d="M9 8h30l4 12a5 5 0 0 1-9.5 1 5 5 0 0 1-9.5 0 5 5 0 0 1-9.5 0A5 5 0 0 1 5 20zM16.5 8l-2 13M24 8v13M31.5 8l2 13M9 26v16h30V26M22 42V31h10v11"
      />
    </Picture>
  );
}
