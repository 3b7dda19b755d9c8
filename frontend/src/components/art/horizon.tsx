import { Picture, type PictureProps } from "./picture";

export function HorizonArt(props: PictureProps) {
  return (
    <Picture viewBox="0 0 1440 300" preserveAspectRatio="xMidYMax slice" {...props}>
      <path
        className="ss"
        d="M0 300V196c90-34 200-30 290 6 80 32 130 62 196 98zM1440 300V190c-96-30-210-22-300 14-80 32-130 60-196 96z"
      />
      <path
        className="l o"
        strokeWidth="1.6"
        strokeLinecap="round"
        d="M560 268h70M648 268h18M742 282h96M520 287h34M868 266h44M930 280h22M690 294h40"
      />
      <path className="s" d="M0 300V236c80-6 150-5 214 0 26 2 44 10 58 24 12 12 22 26 30 40z" />
      <g transform="translate(0 -3)">
        <path className="p l" strokeWidth="2" strokeLinejoin="round" d="M26 237v-40l23 -22l23 22v40z" />
        <rect className="w" x="43" y="205" width="12" height="14" rx="1.5" />
        <path className="p l" strokeWidth="2" strokeLinejoin="round" d="M86 236v-62l29 -26l29 26v62z" />
        <rect className="w" x="100" y="184" width="11" height="13" rx="1.5" />
        <rect className="s" x="119" y="184" width="11" height="13" rx="1.5" />
        <path className="s" d="M109 236v-16a6 6 0 0 1 12 0v16z" />
        <path className="p l" strokeWidth="2" strokeLinejoin="round" d="M150 237v-34l20 -20l20 20v34z" />
        <rect className="w" x="164" y="211" width="12" height="14" rx="1.5" />
        <path className="l" strokeWidth="2" d="M12 238v-18" />
        <circle className="p l" strokeWidth="2" cx="12" cy="216.4" r="9" />
        <circle className="s" cx="13" cy="217.3" r="6" />
      </g>
      <path className="s" d="M1440 300V236c-80-6-152-5-216 0-26 2-44 10-58 24-12 12-22 26-30 40z" />
      <g transform="translate(1246 236)">
        <path className="p l" strokeWidth="2" strokeLinejoin="round" d="M0 0V-52h112V0zM-8-52 56-84l64 32z" />
        <path className="l" strokeWidth="2" d="M14 0v-52M98 0v-52M30 0v-52M82 0v-52" />
        <path className="w" d="M46 0v-28a10 10 0 0 1 20 0V0z" />
        <circle className="w" cx="56" cy="-65" r="5" />
      </g>
      <path className="l" strokeWidth="2" d="M1432 236v-18" />
      <circle className="p l" strokeWidth="2" cx="1432" cy="214.4" r="9" />
      <circle className="s" cx="1433" cy="215.3" r="6" />
      <g transform="translate(0 -2)">
        <path className="p l" strokeWidth="2" strokeLinejoin="round" d="M1374 238v-38l21 -20l21 20v38z" />
        <rect className="w" x="1389" y="208" width="12" height="14" rx="1.5" />
      </g>
      <path
        className="l"
        strokeWidth="1.2"
        d="M484 108L458 196.5M484 108L510 194.9M484 100L432 197.4M484 100L536 194.2M484 92L406 198.5M484 92L562 193.6M484 84L380 199.6M484 84L588 193.1M484 76L354 200.8M484 76L614 192.7M484 68L328 202.1M484 68L640 192.4M484 60L302 203.5M484 60L666 192.2M484 52L276 204.9M484 52L692 192.1M484 44L250 206.5M484 44L718 192"
      />
      <path className="l" strokeWidth="4" strokeLinejoin="round" d="M460 264L484 40L508 264" />
      <path
        className="l"
        strokeWidth="1.2"
        d="M956 108L930 194.9M956 108L982 196.5M956 100L904 194.2M956 100L1008 197.4M956 92L878 193.6M956 92L1034 198.5M956 84L852 193.1M956 84L1060 199.6M956 76L826 192.7M956 76L1086 200.8M956 68L800 192.4M956 68L1112 202.1M956 60L774 192.2M956 60L1138 203.5M956 52L748 192.1M956 52L1164 204.9M956 44L722 192M956 44L1190 206.5"
      />
      <path className="l" strokeWidth="4" strokeLinejoin="round" d="M932 264L956 40L980 264" />
      <circle className="w" cx="484" cy="34" r="7" />
      <circle className="w" cx="956" cy="34" r="7" />
      <path
        className="l"
        strokeWidth="5"
        strokeLinecap="round"
        strokeLinejoin="round"
        d="M206 209.3L226 208L246 206.7L266 205.5L286 204.4L306 203.2L326 202.2L346 201.2L366 200.2L386 199.3L406 198.5L426 197.7L446 196.9L466 196.2L486 195.6L506 195L526 194.5L546 194L566 193.6L586 193.2L606 192.9L626 192.6L646 192.4L666 192.2L686 192.1L706 192L726 192L746 192L766 192.1L786 192.3L806 192.5L826 192.7L846 193L866 193.4L886 193.8L906 194.3L926 194.8L946 195.3L966 196L986 196.6L1006 197.4L1026 198.1L1046 199L1066 199.9L1086 200.8L1106 201.8L1126 202.8L1146 203.9L1166 205L1186 206.2L1206 207.5L1226 208.8"
      />
      <path
        className="l o"
        strokeWidth="1.4"
        d="M286 211.4L306 210.2L326 209.2L346 208.2L366 207.2L386 206.3L406 205.5L426 204.7L446 203.9L466 203.2L486 202.6L506 202L526 201.5L546 201L566 200.6L586 200.2L606 199.9L626 199.6L646 199.4L666 199.2L686 199.1L706 199L726 199L746 199L766 199.1L786 199.3L806 199.5L826 199.7L846 200L866 200.4L886 200.8L906 201.3L926 201.8L946 202.3L966 203L986 203.6L1006 204.4L1026 205.1L1046 206L1066 206.9L1086 207.8L1106 208.8L1126 209.8L1146 210.9"
      />
      <g transform="translate(592 190.57456790123456)">
        <path className="f" d="M-6 0V-12a6 6 0 0 1 12 0V0z" />
        <circle className="f" cx="0" cy="-24" r="5.1" />
        <path className="w" d="M5-14h13v9H5z" />
        <path className="l" strokeWidth="1.2" d="M5-14l6.5 5 6.5-5" />
      </g>
      <g transform="translate(668 189.67734567901235)">
        <path className="w" d="M-6 0V-12a6 6 0 0 1 12 0V0z" />
        <circle className="f" cx="0" cy="-24" r="5.1" />
      </g>
      <g transform="translate(682 189.59470679012347)">
        <path className="f" d="M-4.2 0V-8.4a4.2 4.2 0 0 1 8.4 0V0z" />
        <circle className="f" cx="0" cy="-16.8" r="3.6" />
      </g>
      <g transform="translate(770 189.7)">
        <g transform="translate(0 0)">
          <path className="f" d="M-6 0V-12a6 6 0 0 1 12 0V0z" />
          <circle className="f" cx="0" cy="-24" r="5.1" />
        </g>
        <path className="l" strokeWidth="2" strokeLinecap="round" d="M7-15l12 3" />
        <path className="w" d="M18-17h24l-4 12H21z" />
        <circle className="f" cx="29" cy="-3" r="3.4" />
      </g>
      <g transform="translate(862 190.8)">
        <circle className="f" cx="2" cy="-24" r="4.8" />
        <path className="w" d="M-3-6v-9a5 5 0 0 1 10 0v9z" />
        <circle className="l" strokeWidth="2" cx="1" cy="-6" r="6" />
        <path className="l" strokeWidth="2" strokeLinecap="round" d="M7-8h5l3 7" />
      </g>
    </Picture>
  );
}
