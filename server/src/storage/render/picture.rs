//! Transforms an image: decodes it within limits, rotates it by its Exif orientation, crops, scales and encodes it.
//!
//! Sizes and crops follow imgproxy, which Supabase uses: an image is never enlarged, and one that does not fill the requested
//! size stays smaller. Reference: imgproxy/imgproxy `processing/prepare.go`, `processing/calc_position.go`.

use std::io::{Cursor, Read};

use ferrobase_resize::{Part, resize};
use flate2::read::MultiGzDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageFormat, ImageReader, Limits};

use super::options::{Accepted, Format, Gravity, Options, Resize, SideLimits, SourceLimits};
use super::rendered::{Fault, Rendered};

/// Memory limit for pixels during a transformation: enough for fifty megapixels at eight bits per channel with transparency. At
/// sixteen bits per channel, fewer pixels fit.
pub const MOST_MEMORY: u64 = 400 << 20;

/// The image in a file that was stored in these content codings, at most `most` bytes. Like imgproxy, it knows gzip.
pub fn decoded(file: Vec<u8>, codings: &str, most: u64) -> Result<Vec<u8>, Fault> {
    match codings.to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(file),
        "gzip" | "x-gzip" => {
            let mut bytes = Vec::new();
            let mut image = MultiGzDecoder::new(file.as_slice()).take(most.saturating_add(1));
            image.read_to_end(&mut bytes).map_err(|_| Fault::Source)?;
            if bytes.len() as u64 > most { Err(Fault::FileSize) } else { Ok(bytes) }
        }
        _ => Err(Fault::Source),
    }
}

/// A source whose header was read, but not its pixels.
pub struct Source<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    format: ImageFormat,
}

/// Formats that can be read.
const READ: [ImageFormat; 6] =
    [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp, ImageFormat::Tiff];

/// Default quality.
const JPEG_QUALITY: u8 = 80;
const WEBP_QUALITY: u8 = 79;
#[cfg(feature = "avif")]
const AVIF_QUALITY: u8 = 63;
/// Speed of AVIF encoding, 1 to 10. Slower means smaller files.
#[cfg(feature = "avif")]
const AVIF_SPEED: u8 = 8;

impl<'a> Source<'a> {
    /// Reads the header of a file and refuses images that are too large.
    pub fn open(file: &'a [u8], limits: &SourceLimits) -> Result<Self, Fault> {
        if file.len() as u64 > limits.bytes {
            return Err(Fault::FileSize);
        }
        let reader = ImageReader::new(Cursor::new(file)).with_guessed_format().map_err(|_| Fault::Source)?;
        let format = reader.format().filter(|format| READ.contains(format)).ok_or(Fault::Source)?;
        let mut decoder = reader.into_decoder().map_err(|_| Fault::Source)?;
        let (width, height) = decoder.dimensions();
        if u64::from(width) * u64::from(height) > limits.pixels {
            return Err(Fault::Resolution);
        }
        if needed(&decoder) > MOST_MEMORY {
            return Err(Fault::Resolution);
        }
        let mut most = Limits::no_limits();
        // Decoders allocate more than the pixels, such as tables and a previous frame.
        most.max_alloc = Some(decoder.total_bytes().saturating_mul(3) + (16 << 20));
        decoder.set_limits(most).map_err(|_| Fault::Resolution)?;
        Ok(Self { decoder: Box::new(decoder), format })
    }

    /// Approximate peak memory of the transformation, in bytes.
    pub fn memory(&self) -> u64 {
        needed(self.decoder.as_ref())
    }

    /// Decodes and transforms the image. `accepted` tells which formats the client accepts.
    pub fn render(mut self, options: &Options, sides: SideLimits, accepted: &Accepted) -> Result<Rendered, Fault> {
        let target = self.target(options, accepted)?;
        let orientation = self.decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let picture = DynamicImage::from_decoder(self.decoder).map_err(|_| Fault::Source)?;
        let has_alpha = picture.color().has_alpha();
        let mut picture = if has_alpha {
            DynamicImage::ImageRgba8(picture.into_rgba8())
        } else {
            DynamicImage::ImageRgb8(picture.into_rgb8())
        };
        picture.apply_orientation(orientation);
        let cut = Cut::of((picture.width(), picture.height()), options, sides, &picture);
        let pixels = scaled(picture, &cut)?;
        let target = if target == ImageFormat::Jpeg && has_alpha { ImageFormat::Png } else { target };
        encoded(&pixels, target, options.quality.and_then(|quality| u8::try_from(quality).ok()))
    }

    /// The format of the result.
    fn target(&self, options: &Options, accepted: &Accepted) -> Result<ImageFormat, Fault> {
        Ok(match options.format {
            Some(Format::Webp) => ImageFormat::WebP,
            Some(Format::Avif) if cfg!(feature = "avif") => ImageFormat::Avif,
            Some(Format::Avif) => return Err(Fault::Rejected),
            None if accepted.avif && cfg!(feature = "avif") => ImageFormat::Avif,
            None if accepted.webp => ImageFormat::WebP,
            None | Some(Format::Origin) => match self.format {
                // Results are not encoded in these formats.
                ImageFormat::Bmp | ImageFormat::Tiff => ImageFormat::Jpeg,
                format => format,
            },
        })
    }
}

/// Bytes of the decoded pixels and of a second image beside them: converted to eight bits per channel, or rotated.
fn needed(decoder: &dyn ImageDecoder) -> u64 {
    let (width, height) = decoder.dimensions();
    decoder.total_bytes() + u64::from(width) * u64::from(height) * 4
}

/// The crop and the scaled size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    to: (u32, u32),
}

impl Cut {
    fn of(size: (u32, u32), options: &Options, sides: SideLimits, picture: &DynamicImage) -> Self {
        let (asked_width, asked_height) = options.size(sides);
        let resize = options.resize.unwrap_or(Resize::Cover);
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        // The factor by which each side shrinks.
        let mut across = asked_width.map_or(1.0, |asked| width / f64::from(asked));
        let mut down = asked_height.map_or(1.0, |asked| height / f64::from(asked));
        match (asked_width, asked_height, resize) {
            (None, None, _) | (_, _, Resize::Fill) => {}
            (None, Some(_), _) => across = down,
            (Some(_), None, _) => down = across,
            (Some(_), Some(_), Resize::Contain) => (across, down) = (across.max(down), across.max(down)),
            (Some(_), Some(_), Resize::Cover) => (across, down) = (across.min(down), across.min(down)),
        }
        if across < 1.0 {
            (across, down) = (1.0, down / across);
        }
        if down < 1.0 {
            (across, down) = (across / down, 1.0);
        }
        let (across, down) = (across.min(width), down.min(height));
        // Scaled by that factor, then cropped to the requested size.
        let whole = (rounded(width / across), rounded(height / down));
        let to = (
            asked_width.map_or(whole.0, |asked| asked.min(whole.0)),
            asked_height.map_or(whole.1, |asked| asked.min(whole.1)),
        );
        let (left, top) = if to == whole { (0, 0) } else { position(whole, to, &options.gravity(), picture) };
        let (x, y) = (width / f64::from(whole.0), height / f64::from(whole.1));
        Self {
            left: f64::from(left) * x,
            top: f64::from(top) * y,
            width: f64::from(to.0) * x,
            height: f64::from(to.1) * y,
            to,
        }
    }
}

/// A whole number of pixels, at least one.
fn rounded(length: f64) -> u32 {
    // Sides are well below 2^32, and the cast saturates.
    (length.round() as u32).max(1)
}

/// The offset of a crop of size `to` in an image of size `whole`.
fn position(whole: (u32, u32), to: (u32, u32), gravity: &Gravity, picture: &DynamicImage) -> (u32, u32) {
    let (free_x, free_y) = (f64::from(whole.0 - to.0), f64::from(whole.1 - to.1));
    let (left, top) = match gravity {
        Gravity::Side { x, y, offset } => {
            let along = |side: i8, free: f64, length: u32, offset: f64| {
                let offset = if offset.abs() >= 1.0 { offset.round() } else { (f64::from(length) * offset).round() };
                match side {
                    -1 => offset,
                    1 => free - offset,
                    _ => ((free + 1.0) / 2.0).floor() + offset,
                }
            };
            (along(*x, free_x, whole.0, offset.0), along(*y, free_y, whole.1, offset.1))
        }
        Gravity::Point(x, y) => {
            let along = |at: f64, length: u32, wanted: u32| (f64::from(length) * at).round() - f64::from(wanted / 2);
            (along(*x, whole.0, to.0), along(*y, whole.1, to.1))
        }
        Gravity::Smart => busiest(whole, to, picture),
    };
    (left.clamp(0.0, free_x) as u32, top.clamp(0.0, free_y) as u32)
}

/// Side length of the small copy that is analysed.
const LOOKED_AT: u32 = 128;

/// The window with the most detail: edges and colours, measured on a small copy.
fn busiest(whole: (u32, u32), to: (u32, u32), picture: &DynamicImage) -> (f64, f64) {
    let small = picture.thumbnail_exact(LOOKED_AT.min(picture.width()), LOOKED_AT.min(picture.height())).into_rgb8();
    let (width, height) = (small.width() as usize, small.height() as usize);
    let weight = |x: usize, y: usize| {
        let at =
            |x: usize, y: usize| small.get_pixel(x.min(width - 1) as u32, y.min(height - 1) as u32).0.map(i64::from);
        let [red, green, blue] = at(x, y);
        let light = |[red, green, blue]: [i64; 3]| (red * 3 + green * 6 + blue) / 10;
        let here = light([red, green, blue]);
        let edge = (here - light(at(x + 1, y))).abs() + (here - light(at(x, y + 1))).abs();
        edge * 2 + red.max(green).max(blue) - red.min(green).min(blue)
    };
    // A crop moves along one side only, so sums of columns and rows are enough.
    let columns: Vec<i64> = (0..width).map(|x| (0..height).map(|y| weight(x, y)).sum()).collect();
    let rows: Vec<i64> = (0..height).map(|y| (0..width).map(|x| weight(x, y)).sum()).collect();
    let best = |sums: &[i64], whole: u32, wanted: u32| {
        let scale = f64::from(whole) / sums.len() as f64;
        let window = ((f64::from(wanted) / scale).round() as usize).clamp(1, sums.len());
        let mut sum: i64 = sums[..window].iter().sum();
        let (mut most, mut begins) = (sum, 0);
        for begin in 1..=sums.len() - window {
            sum += sums[begin + window - 1] - sums[begin - 1];
            if sum > most {
                (most, begins) = (sum, begin);
            }
        }
        begins as f64 * scale
    };
    (best(&columns, whole.0, to.0), best(&rows, whole.1, to.1))
}

/// An image with eight bits per channel and three or four channels.
struct Scaled {
    width: u32,
    height: u32,
    bytes: Vec<u8>,
    has_alpha: bool,
}

fn scaled(picture: DynamicImage, cut: &Cut) -> Result<Scaled, Fault> {
    let has_alpha = picture.color().has_alpha();
    let (width, height) = (picture.width(), picture.height());
    if cut.to == (width, height) {
        return Ok(Scaled { width, height, bytes: picture.into_bytes(), has_alpha });
    }
    let part = Part {
        left: cut.left,
        top: cut.top,
        width: cut.width.min(f64::from(width) - cut.left),
        height: cut.height.min(f64::from(height) - cut.top),
    };
    let bytes = resize(&picture.into_bytes(), (width, height), has_alpha, part, cut.to).ok_or(Fault::Internal)?;
    Ok(Scaled { width: cut.to.0, height: cut.to.1, bytes, has_alpha })
}

fn encoded(picture: &Scaled, format: ImageFormat, quality: Option<u8>) -> Result<Rendered, Fault> {
    let Scaled { width, height, bytes, has_alpha } = picture;
    let color = if *has_alpha { ExtendedColorType::Rgba8 } else { ExtendedColorType::Rgb8 };
    let mut out = Vec::new();
    let written = match format {
        ImageFormat::Jpeg => JpegEncoder::new_with_quality(&mut out, quality.unwrap_or(JPEG_QUALITY))
            .write_image(bytes, *width, *height, color),
        ImageFormat::WebP => {
            let encoder = if *has_alpha {
                webp::Encoder::from_rgba(bytes, *width, *height)
            } else {
                webp::Encoder::from_rgb(bytes, *width, *height)
            };
            let quality = f32::from(quality.unwrap_or(WEBP_QUALITY));
            out = encoder.encode_simple(false, quality).map_err(|_| Fault::Internal)?.to_vec();
            Ok(())
        }
        #[cfg(feature = "avif")]
        ImageFormat::Avif => image::codecs::avif::AvifEncoder::new_with_speed_quality(
            &mut out,
            AVIF_SPEED,
            quality.unwrap_or(AVIF_QUALITY),
        )
        .with_num_threads(Some(1))
        .write_image(bytes, *width, *height, color),
        ImageFormat::Gif => image::codecs::gif::GifEncoder::new(&mut out).encode(bytes, *width, *height, color),
        _ => image::codecs::png::PngEncoder::new(&mut out).write_image(bytes, *width, *height, color),
    };
    written.map_err(|_| Fault::Internal)?;
    let mime = match format {
        ImageFormat::Jpeg => "image/jpeg",
        ImageFormat::WebP => "image/webp",
        ImageFormat::Avif => "image/avif",
        ImageFormat::Gif => "image/gif",
        _ => "image/png",
    };
    Ok(Rendered { bytes: out.into(), mime })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fields::Fields;
    use image::{Rgb, RgbImage};

    const SIDES: SideLimits = SideLimits { least: 1, most: 2000 };
    const LIMITS: SourceLimits = SourceLimits { pixels: 1_000_000, bytes: 1 << 20 };

    /// Red on the left, green on the right, with detail at the far right.
    fn drawing(width: u32, height: u32) -> DynamicImage {
        let pixel = |x: u32, y: u32| match (x * 2 >= width, x * 8 >= width * 7) {
            (_, true) => Rgb([255 * ((x + y) % 2) as u8, 255, 0]),
            (true, _) => Rgb([0, 128, 0]),
            _ => Rgb([128, 0, 0]),
        };
        DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, pixel))
    }

    fn file(format: ImageFormat) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        drawing(200, 100).write_to(&mut out, format).expect("written");
        out.into_inner()
    }

    fn options(query: &str) -> Options {
        Options::of_fields(&Fields::of_query(query)).expect(query)
    }

    fn render(file: &[u8], query: &str) -> Result<(Rendered, DynamicImage), Fault> {
        let rendered = Source::open(file, &LIMITS)?.render(&options(query), SIDES, &Accepted::default())?;
        let shown = image::load_from_memory(&rendered.bytes).expect("a picture");
        Ok((rendered, shown))
    }

    #[test]
    fn sizes_are_those_of_imgproxy() {
        let source = file(ImageFormat::Png);
        for (query, size) in [
            ("", (200, 100)),
            ("width=100", (100, 50)),
            ("height=20", (40, 20)),
            ("width=50&height=50", (50, 50)),
            ("width=50&height=50&resize=contain", (50, 25)),
            ("width=50&height=50&resize=fill", (50, 50)),
            ("width=50&resize=fill", (50, 100)),
            // Images are never enlarged.
            ("width=400", (200, 100)),
            ("width=400&height=400", (200, 100)),
            ("width=400&height=50", (200, 50)),
            ("width=400&height=50&resize=fill", (200, 25)),
            ("width=1", (1, 1)),
        ] {
            let (_, shown) = render(&source, query).expect(query);
            assert_eq!((shown.width(), shown.height()), size, "{query}");
        }
    }

    #[test]
    fn gravity_and_offsets_choose_the_crop() {
        let source = file(ImageFormat::Png);
        let is_red = |query: &str| {
            let (_, shown) = render(&source, &format!("width=40&height=100&{query}")).expect(query);
            let [red, green, _] = shown.to_rgb8().get_pixel(2, 50).0;
            red > green
        };
        for (query, red) in [
            ("", true), // centred: 80 to 120
            ("gravity=we", true),
            ("gravity=ea", false),
            ("gravity=noea", false),
            ("gravity=ea&x_offset=150", true),
            ("gravity=ce&x_offset=30", false),
            ("gravity=ce&x_offset=0.2", false),
            ("gravity=fp&x_offset=0&y_offset=0", true),
            ("gravity=fp&x_offset=1&y_offset=0", false),
            ("gravity=sm", false),
        ] {
            assert_eq!(is_red(query), red, "{query}");
        }
    }

    #[test]
    fn quality_changes_the_size_and_formats_are_as_requested() {
        for (format, mime) in [
            (ImageFormat::Jpeg, "image/jpeg"),
            (ImageFormat::Png, "image/png"),
            (ImageFormat::Gif, "image/gif"),
            (ImageFormat::WebP, "image/webp"),
            (ImageFormat::Bmp, "image/jpeg"),
            (ImageFormat::Tiff, "image/jpeg"),
        ] {
            let source = file(format);
            assert_eq!(render(&source, "width=100").expect("rendered").0.mime, mime);
            assert_eq!(render(&source, "width=100&format=webp").expect("rendered").0.mime, "image/webp");
        }
        let length = |source: &[u8], query: &str| render(source, query).expect(query).0.bytes.len();
        let (jpeg, png) = (file(ImageFormat::Jpeg), file(ImageFormat::Png));
        assert!(length(&jpeg, "quality=20") < length(&jpeg, ""));
        assert!(length(&jpeg, "") < length(&jpeg, "quality=100"));
        assert!(length(&png, "format=webp&quality=20") < length(&png, "format=webp&quality=100"));
    }

    #[test]
    fn exif_orientation_is_applied() {
        let jpeg = file(ImageFormat::Jpeg);
        // APP1 with an Exif block of orientation 6: a quarter turn clockwise.
        let exif: &[u8] = b"\xFF\xE1\0\x22Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let turned = [&jpeg[..2], exif, &jpeg[2..]].concat();
        let (rendered, shown) = render(&turned, "width=50").expect("rendered");
        assert_eq!((shown.width(), shown.height()), (50, 100));
        let [red, green, _] = shown.to_rgb8().get_pixel(25, 5).0;
        assert!(red > green, "left is above now");
        assert!(!rendered.bytes.windows(4).any(|bytes| bytes == b"Exif"), "other Exif data is removed");
    }

    #[test]
    fn oversized_or_invalid_images_are_refused_before_decoding() {
        let small = SourceLimits { pixels: 200 * 100 - 1, bytes: 1 << 20 };
        let png = file(ImageFormat::Png);
        assert_eq!(Source::open(&png, &small).err(), Some(Fault::Resolution));
        assert_eq!(Source::open(&png, &SourceLimits { pixels: u64::MAX, bytes: 10 }).err(), Some(Fault::FileSize));
        for broken in [&b"not a picture"[..], b"", &png[..20], b"\0\0\0\x10ftypmif1\0\0\0\0", b"<svg xmlns='x'/>"] {
            assert_eq!(Source::open(broken, &LIMITS).err(), Some(Fault::Source), "{broken:?}");
        }
        // A valid header with a truncated body.
        assert_eq!(render(&png[..png.len() / 2], "width=10").err(), Some(Fault::Source));
        // Few enough pixels, but too many bytes for each.
        let generous = SourceLimits { pixels: 50_000_000, bytes: 1 << 20 };
        let announcing = |channel_bits: u8, sides: [u8; 2]| {
            // Width and height, bits per channel, colour type RGBA, and the chunk's checksum.
            let mut head = png[..33].to_vec();
            head[16..26].copy_from_slice(&[0, 0, sides[0], sides[1], 0, 0, sides[0], sides[1], channel_bits, 6]);
            let sum = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC).checksum(&head[12..29]);
            head[29..33].copy_from_slice(&sum.to_be_bytes());
            [&head, &png[33..]].concat()
        };
        let seven_thousand = [0x1B, 0x58];
        assert!(Source::open(&announcing(8, seven_thousand), &generous).is_ok());
        assert_eq!(Source::open(&announcing(16, seven_thousand), &generous).err(), Some(Fault::Resolution));
        // A few bytes that announce ten billion pixels.
        let mut bomb = png.clone();
        bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xA0, 0, 1, 0x86, 0xA0]);
        assert!(matches!(Source::open(&bomb, &LIMITS).err(), Some(Fault::Resolution | Fault::Source)));
    }

    #[cfg(feature = "avif")]
    #[test]
    fn avif_has_a_quality_too() {
        let source = file(ImageFormat::Png);
        let length = |query: &str| {
            let rendered =
                Source::open(&source, &LIMITS).expect("open").render(&options(query), SIDES, &Accepted::default());
            let rendered = rendered.expect(query);
            assert_eq!(rendered.mime, "image/avif");
            assert_eq!(&rendered.bytes[4..12], b"ftypavif");
            rendered.bytes.len()
        };
        assert!(length("format=avif&quality=20") < length("format=avif&quality=100"));
    }

    #[cfg(not(feature = "avif"))]
    #[test]
    fn a_build_without_avif_reports_it() {
        let source = file(ImageFormat::Png);
        assert_eq!(render(&source, "format=avif").err(), Some(Fault::Rejected));
    }
}
