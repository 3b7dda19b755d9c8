//! Scales an image. This is a crate of its own because most of `fast_image_resize` is compiled where it is called: here once, and
//! optimized in debug builds, too.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::pixels::{U8x3, U8x4};
use fast_image_resize::{
    FilterType, IntoImageView, IntoImageViewMut, PixelTrait, PixelType, ResizeAlg, ResizeOptions, Resizer,
};

/// The part of an image that becomes the whole, in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// Scales a `part` of an image, whose width and height are `from`, so that they become `to`. `pixels` are RGB, or RGBA if the image
/// `has_alpha`, a byte each.
///
/// `None` if these are not the pixels of such an image, or the part is not in it.
#[must_use]
pub fn resize(pixels: &[u8], from: (u32, u32), has_alpha: bool, part: Part, to: (u32, u32)) -> Option<Vec<u8>> {
    let kind = if has_alpha { PixelType::U8x4 } else { PixelType::U8x3 };
    let source = ImageRef::new(from.0, from.1, pixels, kind).ok()?;
    let mut target = Image::new(to.0, to.1, kind);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3));
    let options = options.crop(part.left, part.top, part.width, part.height);
    if has_alpha {
        resize_as::<U8x4>(&source, &mut target, &options)
    } else {
        resize_as::<U8x3>(&source, &mut target, &options)
    }?;
    Some(target.into_vec())
}

/// `Resizer::resize` for one type of pixels: the library's own contains code for all thirteen.
fn resize_as<P: PixelTrait>(source: &ImageRef, target: &mut Image, options: &ResizeOptions) -> Option<()> {
    let (from, mut to) = (source.image_view::<P>()?, target.image_view_mut::<P>()?);
    Resizer::new().resize_typed(&from, &mut to, options).ok()
}
