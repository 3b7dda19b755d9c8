import { Picture, type PictureProps } from "./picture";

export function BasketArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <path className="s" d="M7 24h34l-4 16a3 3 0 0 1-3 2.3H14A3 3 0 0 1 11 40z" />
      <circle className="w" cx="19" cy="17.5" r="6" />
      <path className="p l" strokeWidth="2" strokeLinejoin="round" d="M24 23c0-8 3-13 7-13s7 5 7 13" />
      <path className="l" strokeWidth="2" strokeLinecap="round" d="M19 11.5c0-2 1-3.5 2.5-4M28 15l2 2M32 14l2 2" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinejoin="round"
        strokeLinecap="round"
        d="M5 24h38M8 24l3.2 16a2.5 2.5 0 0 0 2.5 2h20.6a2.5 2.5 0 0 0 2.5-2L40 24M17 29.5l1.2 7.5M24 29.5V37M31 29.5 29.8 37"
      />
    </Picture>
  );
}
