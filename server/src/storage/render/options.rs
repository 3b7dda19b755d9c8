//! Image transformation options, from a query, the body of a signing request, or a signed token.
//!
//! Reference: supabase/storage `src/http/schemas/transformations.ts`, `src/storage/renderer/image.ts`.

use crate::storage::error::StorageError;
use crate::storage::fields::Fields;

/// How an image fills the requested size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Fills it and is cropped.
    Cover,
    /// Fits into it.
    Contain,
    /// Is stretched to it.
    Fill,
}

/// The requested format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The format of the source.
    Origin,
    Webp,
    Avif,
}

/// Which part is kept when an image is cropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gravity {
    /// Towards a side or a corner, or centred: -1, 0, 1 for left or top, centre, right or bottom. Offsets below 1 are relative,
    /// others are pixels.
    Side { x: i8, y: i8, offset: (f64, f64) },
    /// Around the most detailed area.
    Smart,
    /// Around a point, with both coordinates within 0…1.
    Point(f64, f64),
}

impl Default for Gravity {
    fn default() -> Self {
        Self::Side { x: 0, y: 0, offset: (0.0, 0.0) }
    }
}

const RESIZES: [(&str, Resize); 3] = [("cover", Resize::Cover), ("contain", Resize::Contain), ("fill", Resize::Fill)];
const FORMATS: [(&str, Format); 3] = [("origin", Format::Origin), ("avif", Format::Avif), ("webp", Format::Webp)];
const GRAVITIES: [&str; 11] = ["no", "so", "ea", "we", "noea", "nowe", "soea", "sowe", "ce", "sm", "fp"];

/// The minimum and maximum side length of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideLimits {
    pub least: i64,
    pub most: i64,
}

/// Limits of a source image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLimits {
    pub pixels: u64,
    pub bytes: u64,
}

/// The formats that the client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accepted {
    pub webp: bool,
    pub avif: bool,
}

/// The options as given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub width: Option<i64>,
    pub height: Option<i64>,
    pub resize: Option<Resize>,
    pub quality: Option<i64>,
    pub format: Option<Format>,
    gravity: Option<&'static str>,
    offset: (Option<f64>, Option<f64>),
}

impl Options {
    /// From a query or the `transform` of a body.
    pub fn of_fields(fields: &Fields) -> Result<Self, StorageError> {
        let named = |name: &str, known: &[&'static str]| fields.one_of(name, known);
        let options = Self {
            height: fields.integer("height", 0)?,
            width: fields.integer("width", 0)?,
            resize: named("resize", &RESIZES.map(|(name, _)| name))?.and_then(|name| pick(&RESIZES, name)),
            format: named("format", &FORMATS.map(|(name, _)| name))?.and_then(|name| pick(&FORMATS, name)),
            quality: fields.integer_within("quality", 20, 100)?,
            gravity: named("gravity", &GRAVITIES)?,
            offset: (fields.decimal("x_offset")?, fields.decimal("y_offset")?),
        };
        if options.gravity == Some("fp") {
            for (name, value) in [("x_offset", options.offset.0), ("y_offset", options.offset.1)] {
                let wrong = match value {
                    None => fields.missing(name),
                    Some(value) if value < 0.0 => fields.refuse(name, "must be >= 0"),
                    Some(value) if value > 1.0 => fields.refuse(name, "must be <= 1"),
                    Some(_) => continue,
                };
                return Err(StorageError::Invalid(format!("{wrong}, {} must match \"then\" schema", fields.at())));
            }
        }
        Ok(options)
    }

    /// From a signed token, which we wrote.
    pub fn of_text(text: &str) -> Self {
        let mut options = Self::default();
        for item in text.split(',') {
            let mut words = item.split(':');
            let (name, Some(value)) =
                (words.next().unwrap_or_default(), words.next().filter(|value| !value.is_empty()))
            else {
                continue;
            };
            let number = || value.parse().ok();
            match name {
                "height" => options.height = number(),
                "width" => options.width = number(),
                "quality" => options.quality = number(),
                "resize" => options.resize = pick(&RESIZES, value),
                "format" => options.format = pick(&FORMATS, value),
                "gravity" => {
                    options.gravity = GRAVITIES.into_iter().find(|known| *known == value);
                    let mut offset = || words.next().and_then(|word| word.parse().ok()).filter(|n: &f64| n.is_finite());
                    options.offset = (offset(), offset());
                }
                _ => {}
            }
        }
        options
    }

    /// As stored in tokens (`signed`) or shown in `X-Transformations`. Empty without options.
    pub fn text(&self, sides: SideLimits, signed: bool) -> String {
        let mut items = Vec::new();
        let side = |side: Option<i64>| side.filter(|side| *side > 0).map(|side| side.clamp(sides.least, sides.most));
        items.extend(side(self.height).map(|height| format!("height:{height}")));
        items.extend(side(self.width).map(|width| format!("width:{width}")));
        if side(self.height).or(side(self.width)).is_some() {
            items.extend(match (signed, self.resize) {
                // Upstream writes `undefined` here, which is read as nothing.
                (true, None) => None,
                (true, Some(resize)) => Some(format!("resize:{}", name_of(&RESIZES, resize))),
                (false, resize) => Some(format!(
                    "resizing_type:{}",
                    match resize.unwrap_or(Resize::Cover) {
                        Resize::Cover => "fill",
                        Resize::Contain => "fit",
                        Resize::Fill => "force",
                    }
                )),
            });
        }
        items.extend(self.quality.map(|quality| format!("quality:{quality}")));
        let format = self.format.filter(|format| signed || *format != Format::Origin);
        items.extend(format.map(|format| format!("format:{}", name_of(&FORMATS, format))));
        items.extend(self.gravity.map(|gravity| match (gravity, self.offset) {
            ("sm", _) | (_, (None, None)) => format!("gravity:{gravity}"),
            (_, (x, y)) => format!("gravity:{gravity}:{}:{}", x.unwrap_or(0.0), y.unwrap_or(0.0)),
        }));
        items.join(",")
    }

    /// The requested width and height within the limits; `None` means unconstrained.
    pub fn size(&self, sides: SideLimits) -> (Option<u32>, Option<u32>) {
        let side = |side: Option<i64>| {
            let side = side.filter(|side| *side > 0)?.clamp(sides.least, sides.most);
            u32::try_from(side).ok()
        };
        (side(self.width), side(self.height))
    }

    pub fn gravity(&self) -> Gravity {
        let (x, y) = (self.offset.0.unwrap_or(0.0), self.offset.1.unwrap_or(0.0));
        let to = |x_side, y_side| Gravity::Side { x: x_side, y: y_side, offset: (x, y) };
        match self.gravity {
            Some("no") => to(0, -1),
            Some("so") => to(0, 1),
            Some("ea") => to(1, 0),
            Some("we") => to(-1, 0),
            Some("noea") => to(1, -1),
            Some("nowe") => to(-1, -1),
            Some("soea") => to(1, 1),
            Some("sowe") => to(-1, 1),
            Some("sm") => Gravity::Smart,
            Some("fp") => Gravity::Point(x.clamp(0.0, 1.0), y.clamp(0.0, 1.0)),
            _ => to(0, 0),
        }
    }
}

fn pick<T: Copy>(known: &[(&'static str, T)], name: &str) -> Option<T> {
    known.iter().find(|(text, _)| *text == name).map(|(_, value)| *value)
}

fn name_of<T: Copy + PartialEq>(known: &[(&'static str, T)], value: T) -> &'static str {
    known.iter().find(|(_, other)| *other == value).map_or("", |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: SideLimits = SideLimits { least: 1, most: 2000 };

    fn read(query: &str) -> Result<Options, StorageError> {
        Options::of_fields(&Fields::of_query(query))
    }

    #[test]
    fn options_are_written_as_upstream_does() {
        for (query, shown, signed) in [
            ("", "", ""),
            ("width=0", "", ""),
            ("width=100&height=9000", "height:2000,width:100,resizing_type:fill", "height:2000,width:100"),
            ("width=10&resize=contain", "width:10,resizing_type:fit", "width:10,resize:contain"),
            (
                "width=10&resize=fill&quality=30",
                "width:10,resizing_type:force,quality:30",
                "width:10,resize:fill,quality:30",
            ),
            ("format=origin", "", "format:origin"),
            ("format=webp", "format:webp", "format:webp"),
            ("gravity=sm&x_offset=3", "gravity:sm", "gravity:sm"),
            ("gravity=no", "gravity:no", "gravity:no"),
            ("gravity=ea&y_offset=-5", "gravity:ea:0:-5", "gravity:ea:0:-5"),
            ("gravity=fp&x_offset=0&y_offset=1", "gravity:fp:0:1", "gravity:fp:0:1"),
        ] {
            let options = read(query).expect(query);
            assert_eq!(
                (options.text(SIDES, false).as_str(), options.text(SIDES, true).as_str()),
                (shown, signed),
                "{query}"
            );
            let again = Options::of_text(&options.text(SIDES, true));
            assert_eq!(again.text(SIDES, false), options.text(SIDES, false), "{query}");
            assert_eq!(again.gravity(), options.gravity(), "{query}");
        }
    }

    #[test]
    fn options_that_the_schema_refuses_are_reported() {
        for (query, said) in [
            ("width=-1", "querystring/width must be >= 0"),
            ("width=a", "querystring/width must be integer"),
            ("quality=19", "querystring/quality must be >= 20"),
            ("quality=101", "querystring/quality must be <= 100"),
            ("resize=crop", "querystring/resize must be equal to one of the allowed values"),
            ("format=png", "querystring/format must be equal to one of the allowed values"),
            ("x_offset=a", "querystring/x_offset must be number"),
            (
                "gravity=fp&x_offset=0.5",
                "querystring must have required property 'y_offset', querystring must match \"then\" schema",
            ),
            (
                "gravity=fp&x_offset=0.5&y_offset=2",
                "querystring/y_offset must be <= 1, querystring must match \"then\" schema",
            ),
        ] {
            assert_eq!(read(query).expect_err(query).to_string(), said);
        }
    }
}
