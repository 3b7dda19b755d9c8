import { Picture, type PictureProps } from "./picture";

export function SchoolArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 48 48" {...props}>
      <path className="s" d="M24 15c-5-4-11-5-18-5v27c7 0 13 1 18 5 5-4 11-5 18-5V10c-7 0-13 1-18 5z" />
      <path className="w" d="M31 11.5v14l3.5-3 3.5 3v-15z" />
      <path
        className="l"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
        d="M24 15c-5-4-11-5-18-5v27c7 0 13 1 18 5 5-4 11-5 18-5V10c-7 0-13 1-18 5zM24 15v27M11 17.5c3 .2 5.5.8 8 2M11 24c3 .2 5.5.8 8 2"
      />
    </Picture>
  );
}
