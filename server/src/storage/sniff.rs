//! Detects a file's media type from its first bytes, regardless of the declared type.
//!
//! It knows common types of documents: pictures, PDF and Word. Uploads pass the result to the database in
//! `storage.detected_mimetype`. Whether it must match the declared type is up to the project's triggers on `storage.objects`,
//! because Supabase itself trusts the sender. Signatures: <https://www.iana.org/assignments/media-types>, ISO/IEC 14496-12 §4.3,
//! ECMA-376 part 2, MS-CFB §2.2.

/// How many bytes [`detect`] looks at.
pub const HEAD_BYTES: usize = 8 * 1024;

/// The type if no signature matches.
pub const UNKNOWN: &str = "application/octet-stream";

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Maximum bytes before a PDF's header (ISO 32000-1, annex H.3.4.1).
const PDF_LEAD: usize = 1024;

/// The media type of a file that begins with `head`; [`UNKNOWN`] if no signature matches.
///
/// Any compound file counts as `application/msword`, and an Office package counts as a Word document unless it shows signs of a
/// spreadsheet or of slides, because the rest lies beyond `head`.
pub fn detect(head: &[u8]) -> &'static str {
    match head {
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => "image/png",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'I', b'I', 0x2A, 0, ..] | [b'M', b'M', 0, 0x2A, ..] => "image/tiff",
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => brand.get(..4).map_or(UNKNOWN, of_brand),
        [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1, ..] => "application/msword",
        [b'P', b'K', 3, 4, ..] => of_zip(head),
        // The reserved bytes of the header are 0. Two letters alone are too common.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => "image/bmp",
        _ if contains(&head[..head.len().min(PDF_LEAD)], b"%PDF") => "application/pdf",
        _ => UNKNOWN,
    }
}

fn of_brand(brand: &[u8]) -> &'static str {
    match brand {
        b"avif" | b"avis" => "image/avif",
        b"heic" | b"heix" | b"hevc" | b"hevx" | b"heim" | b"heis" => "image/heic",
        b"mif1" | b"msf1" => "image/heif",
        _ => UNKNOWN,
    }
}

fn of_zip(head: &[u8]) -> &'static str {
    let package = contains(head, b"[Content_Types].xml") || contains(head, b"_rels/.rels");
    let other = contains(head, b"xl/") || contains(head, b"ppt/");
    if contains(head, b"word/") || (package && !other) { DOCX } else { "application/zip" }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_detected_from_the_first_bytes() {
        let cases: [(&[u8], &str); 20] = [
            (b"\xFF\xD8\xFF\xE0\0\x10JFIF", "image/jpeg"),
            (b"\x89PNG\r\n\x1A\n\0\0", "image/png"),
            (b"\x89PNG", UNKNOWN),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\0\0\0\0WAVEfmt ", UNKNOWN),
            (b"II*\0....", "image/tiff"),
            (b"\0\0\0\x1Cftypavif....", "image/avif"),
            (b"\0\0\0\x18ftypheic....", "image/heic"),
            (b"\0\0\0\x18ftypisom....", UNKNOWN),
            (b"\0\0\0\x18ftyp", UNKNOWN),
            (b"BM\x46\0\0\0\0\0\0\0\x36", "image/bmp"),
            (b"BMX is a sport", UNKNOWN),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"\xEF\xBB\xBF\r\n%PDF-1.4", "application/pdf"),
            (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0", "application/msword"),
            (b"PK\x03\x04....[Content_Types].xml....word/document.xml", DOCX),
            (b"PK\x03\x04....[Content_Types].xml....xl/workbook.xml", "application/zip"),
            (b"MZ\x90\0", UNKNOWN),
            (b"", UNKNOWN),
        ];
        for (head, expected) in cases {
            assert_eq!(detect(head), expected, "{}", String::from_utf8_lossy(head));
        }
        let mut late = vec![b' '; PDF_LEAD];
        late.extend_from_slice(b"%PDF-1.4");
        assert_eq!(detect(&late), UNKNOWN);
    }
}
