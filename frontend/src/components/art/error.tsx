import { Picture, type PictureProps } from "./picture";

export function ErrorArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 240 144" {...props}>
      <path className="s" d="M2 131c2-20 16-31 34-31s32 11 36 31zM168 131c4-20 18-31 36-31s32 11 34 31z" />
      <path className="l" strokeWidth="1.6" strokeLinecap="round" d="M0 131h100M138 131h102" />
      <path className="l o" strokeWidth="1.6" strokeLinecap="round" d="M84 137h34M126 137h18M100 142h22" />
      <path
        className="l"
        strokeWidth="1"
        d="M120 52L107 100M120 52L133 100M120 46L94 100M120 46L146 100M120 40L81 100M120 40L159 100M120 34L68 100M120 34L172 100M120 28L185 100M120 22L198 100"
      />
      <path className="l" strokeWidth="2.6" strokeLinejoin="round" d="M107 131L120 18L133 131" />
      <circle className="w" cx="120" cy="15" r="5" />
      <path className="l" strokeWidth="3.6" strokeLinecap="round" d="M30 100H210" />
      <path className="l" strokeWidth="1.4" strokeLinecap="round" d="M54 100c-2-14 4-22 2-34M67 100c0-10 8-16 4-30" />
      <path
        className="p l"
        strokeWidth="2"
        strokeLinejoin="round"
        d="M170 50a11 11 0 0 1 21-4 9 9 0 0 1 4 17h-26a7 7 0 0 1 1-13z"
      />
      <path className="w" d="M183 64l-7 12h6l-3 10 10-14h-6l4-8z" />
    </Picture>
  );
}
