import { Picture, type PictureProps } from "./picture";

export function GapArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 240 144" {...props}>
      <path className="s" d="M2 131c2-20 16-31 34-31s32 11 36 31zM168 131c4-20 18-31 36-31s32 11 34 31z" />
      <path className="l" strokeWidth="1.6" strokeLinecap="round" d="M0 131h100M138 131h102" />
      <path className="l o" strokeWidth="1.6" strokeLinecap="round" d="M84 137h34M126 137h18M100 142h22" />
      <path
        className="l"
        strokeWidth="1"
        d="M120 52L107 100M120 52L133 100M120 46L94 100M120 46L146 100M120 40L81 100M120 34L68 100M120 28L55 100M120 22L42 100"
      />
      <path className="l" strokeWidth="2.6" strokeLinejoin="round" d="M107 131L120 18L133 131" />
      <circle className="w" cx="120" cy="15" r="5" />
      <path className="l" strokeWidth="3.6" strokeLinecap="round" d="M30 100H150" />
      <path className="l" strokeWidth="3.6" strokeLinecap="round" d="M186 100H210" />
      <path className="l o" strokeWidth="2" strokeLinecap="round" strokeDasharray="1 7" d="M158 100h22" />
      <path className="l" strokeWidth="2.4" strokeLinecap="round" d="M144 98V82" />
      <path className="w" d="M144 58l13 13-13 13-13-13z" />
      <path className="l" strokeWidth="2" strokeLinejoin="round" d="M144 58l13 13-13 13-13-13z" />
      <path className="k" strokeWidth="2" strokeLinecap="round" d="M144 66v5.5M144 75.5v0" />
    </Picture>
  );
}
